// What other weights would do, worked out here from what the plugins gave.
//
// As in the engine: a total is the sum of normalized × weight, and the best total wins. Weights do not change what is
// normalized, nor which nodes are feasible, so that the answer is exact.

export class ScoreTable {
  /** Of an explanation whose scores are in columns. */
  constructor(explanation) {
    const { nodes, totals, plugins } = explanation.table;
    this.pod = explanation.pod;
    this.explanation = explanation;
    this.nodes = nodes;
    this.plugins = plugins;
    this.totals = totals;
    this.chosen = explanation.placed ? nodes.indexOf(explanation.placed) : -1;
    // Points that no plugin's column accounts for (an extender's): they stay as they are.
    this.others = totals.map((total, node) =>
      total - plugins.reduce((sum, plugin) => sum + plugin.normalized[node] * plugin.weight, 0));
  }

  /** With these weights, by plugin; a plugin that is not named keeps its own. */
  rescore(weights) {
    const totals = Float64Array.from(this.others);
    for (const plugin of this.plugins) {
      const weight = weights.get(plugin.name) ?? plugin.weight;
      if (weight === 0) continue;
      const { normalized } = plugin;
      for (let node = 0; node < totals.length; node += 1) totals[node] += normalized[node] * weight;
    }
    work.sums += totals.length * this.plugins.length;
    return new Outcome(this, totals);
  }
}

/** How the nodes stand. */
class Outcome {
  constructor(table, totals) {
    this.totals = totals;
    let best = -Infinity;
    for (const total of totals) if (total > best) best = total;
    this.best = best;
    this.ties = 0;
    this.rank = 1;
    const chosen = table.chosen >= 0 ? totals[table.chosen] : undefined;
    let first = -1;
    for (let node = 0; node < totals.length; node += 1) {
      if (totals[node] === best) {
        this.ties += 1;
        if (first < 0 || table.nodes[node] < table.nodes[first]) first = node;
      }
      if (chosen !== undefined && totals[node] > chosen) this.rank += 1;
    }
    // Who shares the best total stays: a tie need not move anybody.
    this.moves = table.chosen >= 0 && this.rank > 1;
    this.node = this.moves || table.chosen < 0 ? first : table.chosen;
  }
}

/** How much was worked out, for tests. */
export const work = { sums: 0 };

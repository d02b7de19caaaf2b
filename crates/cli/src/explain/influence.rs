//! Which plugins' weights decide.

use supercargo_sim::explanation::{Explanation, ReweighedReport};

use crate::{
    failure::Failure,
    output::{Console, Grid},
};

/// Where one node is left there is nothing to decide.
pub(super) fn print(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    if explanation.nodes.len() < 2 || explanation.influence.is_empty() {
        return Ok(());
    }
    console.heading("Influence: the winner with other weights")?;
    let mut grid = Grid::new(["PLUGIN", ">WEIGHT", "WITHOUT", "HALF", "TWICE"]).fitting().indented("  ");
    let (deciding, idle): (Vec<_>, Vec<_>) = explanation.influence.iter().partition(|influence| {
        let with = [&influence.without, &influence.half, &influence.twice];
        with.iter().any(|with| with.changes || with.ties != explanation.report.best.len())
    });
    for influence in &deciding {
        let cells = [&influence.without, &influence.half, &influence.twice].map(in_words);
        let [without, half, twice] = cells;
        grid.row([influence.plugin.clone(), influence.weight.to_string(), without, half, twice]);
    }
    if !deciding.is_empty() {
        console.grid(grid)?;
    }
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|influence| &*influence.plugin).collect();
        let text =
            format!("The winner stays the same without, with half and with twice: {}.", names.join(", "));
        console.paragraph("  ", &text)?;
    }
    Ok(())
}

fn in_words(with: &ReweighedReport) -> String {
    match (with.changes, with.ties) {
        (false, 1) => "same".to_owned(),
        (false, ties) => format!("same, tied with {}", ties - 1),
        (true, _) => format!("{}; it falls to {}", with.best, rank(with.rank)),
    }
}

/// As in "3rd".
pub(super) fn rank(rank: usize) -> String {
    let ending = match (rank % 10, rank % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{rank}{ending}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranks_are_written_as_people_say_them() {
        let ranks = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(super::rank);
        assert_eq!(ranks, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]);
    }
}

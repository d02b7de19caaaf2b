// Asks the scheduler. Reading changes nothing: every request is a GET.

const base = new URL("../supercargo/v1/", document.baseURI);

/** The answer at a path, with these parameters; a list stands for a parameter that is given several times. */
export async function ask(path, parameters = {}) {
  const address = new URL(path, base);
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null) address.searchParams.append(name, one);
    }
  }
  let answer;
  try {
    answer = await fetch(address, { headers: { accept: "application/json" }, cache: "no-store" });
  } catch {
    throw new Error("the scheduler does not answer");
  }
  const text = await answer.text();
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    throw new Error(`${address.pathname}: ${answer.status} ${text.slice(0, 200)}`);
  }
  if (!answer.ok) throw new Error(document.message ?? `${address.pathname}: ${answer.status}`);
  return document;
}

/**
 * Does something again and again while the page is seen, never twice at a time; until the signal ends it.
 * What fails is told and tried again, less often.
 */
export function repeat(milliseconds, signal, work, onError) {
  let timer;
  const turn = async () => {
    let wait = milliseconds;
    if (document.visibilityState === "visible") {
      try {
        await work();
        if (!signal.aborted) onError(null);
      } catch (error) {
        if (!signal.aborted) onError(error);
        wait *= 5;
      }
    }
    if (!signal.aborted) timer = setTimeout(turn, wait);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  turn();
}

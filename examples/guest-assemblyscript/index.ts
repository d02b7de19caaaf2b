// Puts pods on the nodes where most is left of the resource that is scarcest there, and keeps them off nodes that are hot: the
// annotation example.com/temperature, in degrees, above the argument `limit`.
//
//   pluginConfig:
//   - name: Coolest
//     args: {path: coolest.wasm, args: {limit: 70}}

import { DONE, F64, Frame, INFO, UNSCHEDULABLE, fail, intern, log, nodeColumn, podAttribute, textAt } from "./supercargo";
export { supercargo_abi, supercargo_alloc } from "./supercargo";

let limit = 80;
let temperature = 0, cpu = 0, freeCpu = 0, memory = 0, freeMemory = 0;
let wantedCpu = 0, wantedMemory = 0;
let tooHot: u32 = 0;

export function supercargo_init(args: usize, length: usize): u32 {
  const text = textAt(args, length);
  const key = '{"limit":';
  if (text.startsWith(key)) {
    limit = degrees(text, key.length);
    if (limit < 0) return fail("limit must be a whole number of degrees");
  } else if (text != "{}") {
    return fail('the only argument is limit, as in {"limit": 70}');
  }
  temperature = nodeColumn("annotation:example.com/temperature", F64);
  cpu = nodeColumn("allocatable:cpu", F64);
  freeCpu = nodeColumn("free:cpu", F64);
  memory = nodeColumn("allocatable:memory", F64);
  freeMemory = nodeColumn("free:memory", F64);
  wantedCpu = podAttribute("request:cpu", F64);
  wantedMemory = podAttribute("request:memory", F64);
  tooHot = intern("node(s) were too hot");
  log(INFO, "keeps pods off nodes above " + limit.toString() + " degrees");
  return DONE;
}

export function supercargo_filter(frame: Frame): u32 {
  for (let n: u32 = 0; n < frame.asked; n++) {
    const row = frame.row(n);
    // What is absent is not a number, and not above anything.
    if (frame.nodeNumber(temperature, row) > f64(limit)) frame.refuse(row, UNSCHEDULABLE, tooHot);
  }
  return DONE;
}

/// 0 to 100: the smaller of the shares of cpu and memory that are left when the pod has come.
export function supercargo_score(frame: Frame): u32 {
  for (let n: u32 = 0; n < frame.asked; n++) {
    const row = frame.row(n);
    const left = min(
      share(frame.nodeNumber(freeCpu, row) - frame.podNumber(wantedCpu), frame.nodeNumber(cpu, row)),
      share(frame.nodeNumber(freeMemory, row) - frame.podNumber(wantedMemory), frame.nodeNumber(memory, row)),
    );
    frame.setScore(row, i64(100.0 * left));
  }
  return DONE;
}

/// The digits from there on, up to the end of the object; -1 if there is anything else.
function degrees(text: string, from: i32): i32 {
  let number = 0, i = from;
  while (i < text.length && text.charCodeAt(i) == 0x20) i++;
  const first = i;
  for (; i < text.length && i < first + 4; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) break;
    number = number * 10 + digit;
  }
  return i > first && text.substring(i).trim() == "}" ? number : -1;
}

function share(part: f64, whole: f64): f64 {
  return whole > 0.0 ? max(0.0, min(1.0, part / whole)) : 0.0;
}

/// What AssemblyScript calls when something cannot go on: an array index, memory.
export function aborted(message: string | null, file: string | null, line: u32, column: u32): void {
  fail((message ? message : "aborted") + " at line " + line.toString());
  unreachable();
}

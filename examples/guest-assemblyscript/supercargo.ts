// The contract of guests (crates/wasm/ABI.md) for AssemblyScript: imports, memory for the host, and the frame of a call.

@external("supercargo", "node_column")
declare function importNodeColumn(address: usize, length: i32, form: i32): i32;
@external("supercargo", "pod_fact")
declare function importPodAttribute(address: usize, length: i32, form: i32): i32;
@external("supercargo", "intern")
declare function importIntern(address: usize, length: i32): i32;
@external("supercargo", "fail")
declare function importFail(address: usize, length: i32): void;
@external("supercargo", "log")
declare function importLog(level: i32, address: usize, length: i32): void;

export const I64 = 0, F64 = 1, TEXT = 2;
export const INFO = 0, WARN = 1, ERROR = 2;
export const UNSCHEDULABLE: u32 = 1, UNRESOLVABLE: u32 = 2;
export const DONE: u32 = 0, SKIP: u32 = 1, FAILED: u32 = 2;

/// Asks for an attribute of every node; in supercargo_init only.
export function nodeColumn(name: string, form: i32): i32 {
  const text = String.UTF8.encode(name);
  return importNodeColumn(changetype<usize>(text), text.byteLength, form);
}

/// Asks for an attribute of the pod; in supercargo_init only.
export function podAttribute(name: string, form: i32): i32 {
  const text = String.UTF8.encode(name);
  return importPodAttribute(changetype<usize>(text), text.byteLength, form);
}

/// The id of a text: to compare texts with, or as a reason.
export function intern(value: string): u32 {
  const text = String.UTF8.encode(value);
  return importIntern(changetype<usize>(text), text.byteLength);
}

/// Says what is wrong, and gives the code for it.
export function fail(why: string): u32 {
  const text = String.UTF8.encode(why);
  importFail(changetype<usize>(text), text.byteLength);
  return FAILED;
}

/// Writes a line to the scheduler's log.
export function log(level: i32, line: string): void {
  const text = String.UTF8.encode(line);
  importLog(level, changetype<usize>(text), text.byteLength);
}

/// A text that the host wrote.
export function textAt(address: usize, length: usize): string {
  return String.UTF8.decodeUnsafe(address, length);
}

/// What a call is told.
@unmanaged
export class Frame {
  rows: u32;
  asked: u32;
  private askedRows: u32;
  private columns: u32;
  private pod: u32;
  private texts: u32;
  private textCount: u32;
  private scores: u32;
  private verdicts: u32;
  private reasons: u32;

  private column(index: i32): usize {
    return load<u32>(this.columns + (index << 2));
  }
  /// The row of the nth node that is asked about.
  row(n: u32): u32 {
    return load<u32>(this.askedRows + (n << 2));
  }
  nodeNumber(column: i32, row: u32): f64 {
    return load<f64>(this.column(column) + (row << 3));
  }
  nodeText(column: i32, row: u32): u32 {
    return load<u32>(this.column(column) + (row << 2));
  }
  podNumber(index: i32): f64 {
    return load<f64>(this.pod + (index << 3));
  }
  refuse(row: u32, verdict: u32, reason: u32): void {
    store<u32>(this.verdicts + (row << 2), verdict);
    store<u32>(this.reasons + (row << 2), reason);
  }
  setScore(row: u32, score: i64): void {
    store<i64>(this.scores + (row << 3), score);
  }
}

export function supercargo_abi(): u32 {
  return 1;
}

/// Room for the host, for good: nothing frees it, because the minimal runtime collects only when it is told to.
export function supercargo_alloc(bytes: u32): usize {
  return heap.alloc(bytes);
}

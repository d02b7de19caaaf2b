  ;; What every fuzzed guest begins with: imports, a memory, an allocator.
  (import "supercargo" "node_column" (func $node_column (param i32 i32 i32) (result i32)))
  (import "supercargo" "pod_fact" (func $pod_fact (param i32 i32 i32) (result i32)))
  (import "supercargo" "intern" (func $intern (param i32 i32) (result i32)))
  (import "supercargo" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 4096))
  (func (export "supercargo_abi") (result i32) (i32.const 1))
  (func $take (param $bytes i32) (result i32)
    (local $at i32) (local $missing i32)
    (local.set $at (global.get $free))
    (global.set $free
      (i32.and (i32.add (i32.add (local.get $at) (local.get $bytes)) (i32.const 15)) (i32.const -16)))
    (local.set $missing
      (i32.sub (i32.shr_u (i32.add (global.get $free) (i32.const 65535)) (i32.const 16)) (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1))
        (then (return (i32.const 0))))))
    (local.get $at))

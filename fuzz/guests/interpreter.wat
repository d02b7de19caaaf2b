  ;; A guest that does as its arguments say: the host's checks are all that stands in its way.
  ;;
  ;; The arguments are a JSON string of hexadecimal digits, a program. Every call goes on where the last one ended; whoever
  ;; comes after the end is answered well.

  ;; Names of attributes, 16 bytes apart, and how long each is.
  (data (i32.const 112) "\04\07\04\08\09\05\04\00")
  (data (i32.const 128) "name")
  (data (i32.const 144) "label:x")
  (data (i32.const 160) "json")
  (data (i32.const 176) "free:cpu")
  (data (i32.const 192) "nonsense:")
  (data (i32.const 208) "image")
  (data (i32.const 224) "pods")

  (global $program (mut i32) (i32.const 0))
  (global $digits (mut i32) (i32.const 0))
  (global $cursor (mut i32) (i32.const 0))
  ;; The text that was interned last, and how many of one's own there were.
  (global $last (mut i32) (i32.const 0))
  (global $unique (mut i32) (i32.const 0))

  (func $digit (result i32)
    (local $digit i32)
    (if (i32.ge_u (global.get $cursor) (global.get $digits)) (then (return (i32.const 0))))
    (local.set $digit (i32.load8_u (i32.add (global.get $program) (global.get $cursor))))
    (global.set $cursor (i32.add (global.get $cursor) (i32.const 1)))
    (if (result i32) (i32.gt_u (local.get $digit) (i32.const 57))
      (then (i32.sub (local.get $digit) (i32.const 87)))
      (else (i32.sub (local.get $digit) (i32.const 48)))))
  (func $byte (result i32)
    (i32.or (i32.shl (call $digit) (i32.const 4)) (call $digit)))
  (func $word (result i32)
    (i32.or (i32.or (call $byte) (i32.shl (call $byte) (i32.const 8)))
      (i32.or (i32.shl (call $byte) (i32.const 16)) (i32.shl (call $byte) (i32.const 24)))))

  ;; The address of a row of a table that the frame names.
  (func $row (param $table i32) (param $shift i32) (result i32)
    (i32.add (local.get $table) (i32.shl (call $byte) (local.get $shift))))
  (func $name (result i32) (i32.and (call $byte) (i32.const 7)))
  (func $at (param $name i32) (result i32)
    (i32.add (i32.const 128) (i32.shl (local.get $name) (i32.const 4))))
  (func $length (param $name i32) (result i32)
    (i32.load8_u (i32.add (i32.const 112) (local.get $name))))
  (func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))

  (func $fill_scores (param $frame i32) (param $score i64)
    (local $row i32)
    (loop $next
      (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
        (then
          (i64.store
            (i32.add (i32.load offset=28 (local.get $frame)) (i32.shl (local.get $row) (i32.const 3)))
            (local.get $score))
          (local.set $row (i32.add (local.get $row) (i32.const 1)))
          (br $next)))))

  ;; A text that was never there before.
  (func $intern_another
    (global.set $unique (i32.add (global.get $unique) (i32.const 1)))
    (i32.store (i32.const 64) (i32.add (i32.const 0x20202020)
      (i32.or (i32.and (global.get $unique) (i32.const 0x3f))
        (i32.shl (i32.and (global.get $unique) (i32.const 0xfc0)) (i32.const 2)))))
    (global.set $last (call $intern (i32.const 64) (i32.const 4))))

  ;; Runs the program until it returns; $well if there is no more of it.
  (func $run (param $frame i32) (param $well i32) (result i32)
    (local $op i32) (local $name i32)
    (loop $next
      (if (i32.ge_u (global.get $cursor) (global.get $digits)) (then (return (local.get $well))))
      (local.set $op (i32.and (call $byte) (i32.const 31)))
      (if (i32.eq (local.get $op) (i32.const 0)) (then (return (local.get $well))))
      (if (i32.eq (local.get $op) (i32.const 1)) (then (return (call $byte))))
      (if (i32.eq (local.get $op) (i32.const 2)) (then (return (call $word))))
      (if (i32.eq (local.get $op) (i32.const 3))
        (then (i64.store (call $row (i32.load offset=28 (local.get $frame)) (i32.const 3))
          (i64.extend_i32_s (call $word)))))
      (if (i32.eq (local.get $op) (i32.const 4))
        (then (call $fill_scores (local.get $frame) (i64.extend_i32_u (call $byte)))))
      (if (i32.eq (local.get $op) (i32.const 5))
        (then (i32.store (call $row (i32.load offset=32 (local.get $frame)) (i32.const 2)) (call $byte))))
      (if (i32.eq (local.get $op) (i32.const 6))
        (then (i32.store (call $row (i32.load offset=36 (local.get $frame)) (i32.const 2)) (call $byte))))
      (if (i32.eq (local.get $op) (i32.const 7))
        (then (i32.store (call $row (i32.load offset=36 (local.get $frame)) (i32.const 2)) (global.get $last))))
      (if (i32.eq (local.get $op) (i32.const 8))
        (then (global.set $last
          (call $intern (i32.and (call $word) (i32.const 0xffff)) (call $byte)))))
      (if (i32.eq (local.get $op) (i32.const 9)) (then (call $intern_another)))
      (if (i32.eq (local.get $op) (i32.const 10))
        (then (call $fail (i32.and (call $word) (i32.const 0xffff)) (call $byte))))
      (if (i32.eq (local.get $op) (i32.const 11))
        (then
          (local.set $name (call $name))
          (drop (call $node_column
            (call $at (local.get $name)) (call $length (local.get $name)) (i32.and (call $byte) (i32.const 3))))))
      (if (i32.eq (local.get $op) (i32.const 12))
        (then
          (local.set $name (call $name))
          (drop (call $pod_fact
            (call $at (local.get $name)) (call $length (local.get $name)) (i32.and (call $byte) (i32.const 3))))))
      (if (i32.eq (local.get $op) (i32.const 13))
        (then (drop (memory.grow (i32.and (call $byte) (i32.const 7))))))
      (if (i32.eq (local.get $op) (i32.const 14)) (then unreachable))
      (if (i32.eq (local.get $op) (i32.const 15)) (then (loop $again (br $again))))
      (if (i32.eq (local.get $op) (i32.const 16)) (then (i32.store (call $word) (call $word))))
      (if (i32.eq (local.get $op) (i32.const 17))
        (then (memory.fill (call $word) (call $byte) (i32.and (call $word) (i32.const 0xffff)))))
      (if (i32.eq (local.get $op) (i32.const 18)) (then (drop (call $deep (i32.const 0)))))
      (if (i32.eq (local.get $op) (i32.const 19))
        (then (i32.store (i32.add (local.get $frame) (i32.and (call $byte) (i32.const 60))) (call $word))))
      (if (i32.eq (local.get $op) (i32.const 20))
        (then (drop (call $intern (i32.const 0) (i32.and (call $word) (i32.const 0x1fffff))))))
      (br $next))
    unreachable)

  (func (export "supercargo_alloc") (param $bytes i32) (result i32)
    (call $run (i32.const 0) (call $take (local.get $bytes))))
  (func (export "supercargo_init") (param $args i32) (param $length i32) (result i32)
    ;; Without the quotation marks.
    (global.set $program (i32.add (local.get $args) (i32.const 1)))
    (global.set $digits (i32.sub (local.get $length) (i32.const 2)))
    (call $run (i32.const 0) (i32.const 0)))
  (func (export "supercargo_filter") (param $frame i32) (result i32)
    (call $run (local.get $frame) (i32.const 0)))
  (func (export "supercargo_pre_score") (param $frame i32) (result i32)
    (call $run (local.get $frame) (i32.const 0)))
  (func (export "supercargo_score") (param $frame i32) (result i32)
    (call $run (local.get $frame) (i32.const 0)))
  (func (export "supercargo_normalize") (param $frame i32) (result i32)
    (call $run (local.get $frame) (i32.const 0)))

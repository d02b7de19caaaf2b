(import "wasi_snapshot_preview1" "proc_exit" (func (param i32))) (memory 70000) (func (export "supercargo_score") (param i64))

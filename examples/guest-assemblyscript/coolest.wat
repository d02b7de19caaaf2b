;; Made by `npm run build` from sources with the hash 8f90e56d82881ae4.
(module
 (type $0 (func (param i32) (result i32)))
 (type $1 (func (param i32 i32) (result i32)))
 (type $2 (func (param i32 i32)))
 (type $3 (func (param i32 i32 i32)))
 (type $4 (func (param i32 i32 i32) (result i32)))
 (type $5 (func))
 (type $6 (func (param i32 i32 i32 i32)))
 (type $7 (func (param i32 i32 i32) (result f64)))
 (type $8 (func (param i32)))
 (type $9 (func (param i32 i32 i32 i32) (result i32)))
 (type $10 (func (param i32 i32 i64)))
 (type $11 (func (param i32 i32) (result f64)))
 (type $12 (func (param f64 f64) (result f64)))
 (type $13 (func (result i32)))
 (import "supercargo" "pod_fact" (func $supercargo/importPodAttribute (param i32 i32 i32) (result i32)))
 (import "supercargo" "node_column" (func $supercargo/importNodeColumn (param i32 i32 i32) (result i32)))
 (import "supercargo" "log" (func $supercargo/importLog (param i32 i32 i32)))
 (import "supercargo" "intern" (func $supercargo/importIntern (param i32 i32) (result i32)))
 (import "supercargo" "fail" (func $supercargo/importFail (param i32 i32)))
 (global $index/limit (mut i32) (i32.const 80))
 (global $index/temperature (mut i32) (i32.const 0))
 (global $index/cpu (mut i32) (i32.const 0))
 (global $index/freeCpu (mut i32) (i32.const 0))
 (global $index/memory (mut i32) (i32.const 0))
 (global $index/freeMemory (mut i32) (i32.const 0))
 (global $index/wantedCpu (mut i32) (i32.const 0))
 (global $index/wantedMemory (mut i32) (i32.const 0))
 (global $index/tooHot (mut i32) (i32.const 0))
 (global $~lib/rt/tlsf/ROOT (mut i32) (i32.const 0))
 (global $~lib/rt/tcms/fromSpace (mut i32) (i32.const 0))
 (global $~lib/rt/tcms/total (mut i32) (i32.const 0))
 (global $~argumentsLength (mut i32) (i32.const 0))
 (memory $0 1)
 (data $0 (i32.const 1036) ",")
 (data $0.1 (i32.const 1048) "\02\00\00\00\0e\00\00\00a\00b\00o\00r\00t\00e\00d")
 (data $1 (i32.const 1084) ",")
 (data $1.1 (i32.const 1096) "\02\00\00\00\12\00\00\00 \00a\00t\00 \00l\00i\00n\00e\00 ")
 (data $2 (i32.const 1132) "\1c")
 (data $2.1 (i32.const 1144) "\02")
 (data $3 (i32.const 1164) "<")
 (data $3.1 (i32.const 1176) "\02\00\00\00(\00\00\00A\00l\00l\00o\00c\00a\00t\00i\00o\00n\00 \00t\00o\00o\00 \00l\00a\00r\00g\00e")
 (data $4 (i32.const 1228) "<")
 (data $4.1 (i32.const 1240) "\02\00\00\00\1e\00\00\00~\00l\00i\00b\00/\00r\00t\00/\00t\00c\00m\00s\00.\00t\00s")
 (data $5 (i32.const 1292) "<")
 (data $5.1 (i32.const 1304) "\02\00\00\00\1e\00\00\00~\00l\00i\00b\00/\00r\00t\00/\00t\00l\00s\00f\00.\00t\00s")
 (data $7 (i32.const 1388) "|")
 (data $7.1 (i32.const 1400) "\02\00\00\00d\00\00\00t\00o\00S\00t\00r\00i\00n\00g\00(\00)\00 \00r\00a\00d\00i\00x\00 \00a\00r\00g\00u\00m\00e\00n\00t\00 \00m\00u\00s\00t\00 \00b\00e\00 \00b\00e\00t\00w\00e\00e\00n\00 \002\00 \00a\00n\00d\00 \003\006")
 (data $8 (i32.const 1516) "<")
 (data $8.1 (i32.const 1528) "\02\00\00\00&\00\00\00~\00l\00i\00b\00/\00u\00t\00i\00l\00/\00n\00u\00m\00b\00e\00r\00.\00t\00s")
 (data $9 (i32.const 1580) "\1c")
 (data $9.1 (i32.const 1592) "\02\00\00\00\02\00\00\000")
 (data $10 (i32.const 1612) "\\")
 (data $10.1 (i32.const 1624) "\02\00\00\00H\00\00\000\001\002\003\004\005\006\007\008\009\00a\00b\00c\00d\00e\00f\00g\00h\00i\00j\00k\00l\00m\00n\00o\00p\00q\00r\00s\00t\00u\00v\00w\00x\00y\00z")
 (data $11 (i32.const 1708) "<")
 (data $11.1 (i32.const 1720) "\02\00\00\00$\00\00\00U\00n\00p\00a\00i\00r\00e\00d\00 \00s\00u\00r\00r\00o\00g\00a\00t\00e")
 (data $12 (i32.const 1772) ",")
 (data $12.1 (i32.const 1784) "\02\00\00\00\1c\00\00\00~\00l\00i\00b\00/\00s\00t\00r\00i\00n\00g\00.\00t\00s")
 (data $13 (i32.const 1820) ",")
 (data $13.1 (i32.const 1832) "\02\00\00\00\12\00\00\00{\00\"\00l\00i\00m\00i\00t\00\"\00:")
 (data $14 (i32.const 1868) "\1c")
 (data $14.1 (i32.const 1880) "\02\00\00\00\02\00\00\00}")
 (data $15 (i32.const 1900) "l")
 (data $15.1 (i32.const 1912) "\02\00\00\00N\00\00\00l\00i\00m\00i\00t\00 \00m\00u\00s\00t\00 \00b\00e\00 \00a\00 \00w\00h\00o\00l\00e\00 \00n\00u\00m\00b\00e\00r\00 \00o\00f\00 \00d\00e\00g\00r\00e\00e\00s")
 (data $16 (i32.const 2012) "\1c")
 (data $16.1 (i32.const 2024) "\02\00\00\00\04\00\00\00{\00}")
 (data $17 (i32.const 2044) "|")
 (data $17.1 (i32.const 2056) "\02\00\00\00^\00\00\00t\00h\00e\00 \00o\00n\00l\00y\00 \00a\00r\00g\00u\00m\00e\00n\00t\00 \00i\00s\00 \00l\00i\00m\00i\00t\00,\00 \00a\00s\00 \00i\00n\00 \00{\00\"\00l\00i\00m\00i\00t\00\"\00:\00 \007\000\00}")
 (data $18 (i32.const 2172) "\\")
 (data $18.1 (i32.const 2184) "\02\00\00\00D\00\00\00a\00n\00n\00o\00t\00a\00t\00i\00o\00n\00:\00e\00x\00a\00m\00p\00l\00e\00.\00c\00o\00m\00/\00t\00e\00m\00p\00e\00r\00a\00t\00u\00r\00e")
 (data $19 (i32.const 2268) "<")
 (data $19.1 (i32.const 2280) "\02\00\00\00\1e\00\00\00a\00l\00l\00o\00c\00a\00t\00a\00b\00l\00e\00:\00c\00p\00u")
 (data $20 (i32.const 2332) ",")
 (data $20.1 (i32.const 2344) "\02\00\00\00\10\00\00\00f\00r\00e\00e\00:\00c\00p\00u")
 (data $21 (i32.const 2380) "<")
 (data $21.1 (i32.const 2392) "\02\00\00\00$\00\00\00a\00l\00l\00o\00c\00a\00t\00a\00b\00l\00e\00:\00m\00e\00m\00o\00r\00y")
 (data $22 (i32.const 2444) ",")
 (data $22.1 (i32.const 2456) "\02\00\00\00\16\00\00\00f\00r\00e\00e\00:\00m\00e\00m\00o\00r\00y")
 (data $23 (i32.const 2492) ",")
 (data $23.1 (i32.const 2504) "\02\00\00\00\16\00\00\00r\00e\00q\00u\00e\00s\00t\00:\00c\00p\00u")
 (data $24 (i32.const 2540) ",")
 (data $24.1 (i32.const 2552) "\02\00\00\00\1c\00\00\00r\00e\00q\00u\00e\00s\00t\00:\00m\00e\00m\00o\00r\00y")
 (data $25 (i32.const 2588) "<")
 (data $25.1 (i32.const 2600) "\02\00\00\00(\00\00\00n\00o\00d\00e\00(\00s\00)\00 \00w\00e\00r\00e\00 \00t\00o\00o\00 \00h\00o\00t")
 (data $26 (i32.const 2652) "L")
 (data $26.1 (i32.const 2664) "\02\00\00\006\00\00\00k\00e\00e\00p\00s\00 \00p\00o\00d\00s\00 \00o\00f\00f\00 \00n\00o\00d\00e\00s\00 \00a\00b\00o\00v\00e\00 ")
 (data $27 (i32.const 2732) ",")
 (data $27.1 (i32.const 2744) "\02\00\00\00\10\00\00\00 \00d\00e\00g\00r\00e\00e\00s")
 (export "supercargo_init" (func $index/supercargo_init))
 (export "supercargo_filter" (func $index/supercargo_filter))
 (export "supercargo_score" (func $index/supercargo_score))
 (export "aborted" (func $index/aborted))
 (export "supercargo_abi" (func $supercargo/supercargo_abi))
 (export "supercargo_alloc" (func $supercargo/supercargo_alloc))
 (export "memory" (memory $0))
 (start $~start)
 (func $index/aborted (param $0 i32) (param $1 i32) (param $2 i32) (param $3 i32)
  local.get $0
  i32.const 1056
  local.get $0
  select
  i32.const 1104
  call $~lib/string/String.__concat
  local.get $2
  if (result i32)
   local.get $2
   call $~lib/util/number/decimalCount32
   local.tee $0
   i32.const 1
   i32.shl
   i32.const 2
   call $~lib/rt/tcms/__new
   local.tee $1
   local.get $2
   local.get $0
   call $~lib/util/number/utoa_dec_simple<u32>
   local.get $1
  else
   i32.const 1600
  end
  call $~lib/string/String.__concat
  call $supercargo/fail
  unreachable
 )
 (func $~lib/string/String#get:length (param $0 i32) (result i32)
  local.get $0
  i32.const 20
  i32.sub
  i32.load offset=16
  i32.const 1
  i32.shr_u
 )
 (func $~lib/rt/tcms/__new (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  local.get $0
  i32.const 1073741804
  i32.gt_u
  if
   i32.const 1184
   i32.const 1248
   i32.const 125
   i32.const 30
   call $index/aborted
   unreachable
  end
  local.get $0
  i32.const 16
  i32.add
  call $~lib/rt/tlsf/__alloc
  i32.const 4
  i32.sub
  local.tee $2
  local.get $1
  i32.store offset=12
  local.get $2
  local.get $0
  i32.store offset=16
  global.get $~lib/rt/tcms/fromSpace
  local.tee $0
  i32.load offset=8
  local.set $1
  local.get $2
  local.get $0
  i32.store offset=4
  local.get $2
  local.get $1
  i32.store offset=8
  local.get $1
  local.get $2
  call $~lib/rt/tcms/Object#set:next
  local.get $0
  local.get $2
  i32.store offset=8
  local.get $2
  call $~lib/rt/tcms/Object#get:size
  global.get $~lib/rt/tcms/total
  i32.add
  global.set $~lib/rt/tcms/total
  local.get $2
  i32.const 20
  i32.add
 )
 (func $~lib/string/String.UTF8.encode@varargs (param $0 i32) (result i32)
  (local $1 i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  block $2of2
   block $outOfRange
    global.get $~argumentsLength
    i32.const 1
    i32.sub
    br_table $2of2 $2of2 $2of2 $outOfRange
   end
   unreachable
  end
  local.get $0
  local.tee $1
  local.get $1
  i32.const 20
  i32.sub
  i32.load offset=16
  i32.add
  local.set $3
  loop $while-continue|0
   local.get $1
   local.get $3
   i32.lt_u
   if
    local.get $1
    i32.load16_u
    local.tee $4
    i32.const 128
    i32.lt_u
    if (result i32)
     local.get $2
     i32.const 1
     i32.add
    else
     local.get $4
     i32.const 2048
     i32.lt_u
     if (result i32)
      local.get $2
      i32.const 2
      i32.add
     else
      local.get $4
      i32.const 64512
      i32.and
      i32.const 55296
      i32.eq
      local.get $1
      i32.const 2
      i32.add
      local.get $3
      i32.lt_u
      i32.and
      if
       local.get $1
       i32.load16_u offset=2
       i32.const 64512
       i32.and
       i32.const 56320
       i32.eq
       if
        local.get $2
        i32.const 4
        i32.add
        local.set $2
        local.get $1
        i32.const 4
        i32.add
        local.set $1
        br $while-continue|0
       end
      end
      local.get $2
      i32.const 3
      i32.add
     end
    end
    local.set $2
    local.get $1
    i32.const 2
    i32.add
    local.set $1
    br $while-continue|0
   end
  end
  local.get $2
  i32.const 1
  call $~lib/rt/tcms/__new
  local.set $1
  local.get $0
  local.get $0
  call $~lib/string/String#get:length
  local.get $1
  call $~lib/string/String.UTF8.encodeUnsafe
  local.get $1
 )
 (func $~lib/arraybuffer/ArrayBuffer#get:byteLength (param $0 i32) (result i32)
  local.get $0
  i32.const 20
  i32.sub
  i32.load offset=16
 )
 (func $supercargo/nodeColumn (param $0 i32) (result i32)
  i32.const 1
  global.set $~argumentsLength
  local.get $0
  call $~lib/string/String.UTF8.encode@varargs
  local.tee $0
  local.get $0
  call $~lib/arraybuffer/ArrayBuffer#get:byteLength
  i32.const 1
  call $supercargo/importNodeColumn
 )
 (func $supercargo/Frame#nodeNumber (param $0 i32) (param $1 i32) (param $2 i32) (result f64)
  local.get $0
  i32.load offset=12
  local.get $1
  i32.const 2
  i32.shl
  i32.add
  i32.load
  local.get $2
  i32.const 3
  i32.shl
  i32.add
  f64.load
 )
 (func $~lib/string/String.__concat (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  i32.const 1152
  local.set $2
  local.get $0
  call $~lib/string/String#get:length
  i32.const 1
  i32.shl
  local.tee $3
  local.get $1
  call $~lib/string/String#get:length
  i32.const 1
  i32.shl
  local.tee $4
  i32.add
  local.tee $5
  if
   local.get $5
   i32.const 2
   call $~lib/rt/tcms/__new
   local.tee $2
   local.get $0
   local.get $3
   memory.copy
   local.get $2
   local.get $3
   i32.add
   local.get $1
   local.get $4
   memory.copy
  end
  local.get $2
 )
 (func $~lib/rt/tlsf/removeBlock (param $0 i32) (param $1 i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  local.get $1
  i32.load
  local.tee $3
  i32.const 1
  i32.and
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 268
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $3
  i32.const -4
  i32.and
  local.tee $3
  i32.const 12
  i32.lt_u
  if
   i32.const 0
   i32.const 1312
   i32.const 270
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $3
  i32.const 256
  i32.lt_u
  if (result i32)
   local.get $3
   i32.const 4
   i32.shr_u
  else
   i32.const 31
   i32.const 1073741820
   local.get $3
   local.get $3
   i32.const 1073741820
   i32.ge_u
   select
   local.tee $3
   i32.clz
   i32.sub
   local.tee $4
   i32.const 7
   i32.sub
   local.set $2
   local.get $3
   local.get $4
   i32.const 4
   i32.sub
   i32.shr_u
   i32.const 16
   i32.xor
  end
  local.tee $3
  i32.const 16
  i32.lt_u
  local.get $2
  i32.const 23
  i32.lt_u
  i32.and
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 284
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $1
  i32.load offset=8
  local.set $5
  local.get $1
  i32.load offset=4
  local.tee $4
  if
   local.get $4
   local.get $5
   i32.store offset=8
  end
  local.get $5
  if
   local.get $5
   local.get $4
   i32.store offset=4
  end
  local.get $1
  local.get $0
  local.get $2
  i32.const 4
  i32.shl
  local.get $3
  i32.add
  i32.const 2
  i32.shl
  i32.add
  local.tee $1
  i32.load offset=96
  i32.eq
  if
   local.get $1
   local.get $5
   i32.store offset=96
   local.get $5
   i32.eqz
   if
    local.get $0
    local.get $2
    i32.const 2
    i32.shl
    i32.add
    local.tee $1
    i32.load offset=4
    i32.const -2
    local.get $3
    i32.rotl
    i32.and
    local.set $3
    local.get $1
    local.get $3
    i32.store offset=4
    local.get $3
    i32.eqz
    if
     local.get $0
     local.get $0
     i32.load
     i32.const -2
     local.get $2
     i32.rotl
     i32.and
     i32.store
    end
   end
  end
 )
 (func $~lib/rt/tlsf/insertBlock (param $0 i32) (param $1 i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  (local $6 i32)
  local.get $1
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 201
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $1
  i32.load
  local.tee $3
  i32.const 1
  i32.and
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 203
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $1
  i32.const 4
  i32.add
  local.get $1
  i32.load
  i32.const -4
  i32.and
  i32.add
  local.tee $4
  i32.load
  local.tee $2
  i32.const 1
  i32.and
  if
   local.get $0
   local.get $4
   call $~lib/rt/tlsf/removeBlock
   local.get $1
   local.get $3
   i32.const 4
   i32.add
   local.get $2
   i32.const -4
   i32.and
   i32.add
   local.tee $3
   i32.store
   local.get $1
   i32.const 4
   i32.add
   local.get $1
   i32.load
   i32.const -4
   i32.and
   i32.add
   local.tee $4
   i32.load
   local.set $2
  end
  local.get $3
  i32.const 2
  i32.and
  if
   local.get $1
   i32.const 4
   i32.sub
   i32.load
   local.tee $1
   i32.load
   local.tee $6
   i32.const 1
   i32.and
   i32.eqz
   if
    i32.const 0
    i32.const 1312
    i32.const 221
    i32.const 16
    call $index/aborted
    unreachable
   end
   local.get $0
   local.get $1
   call $~lib/rt/tlsf/removeBlock
   local.get $1
   local.get $6
   i32.const 4
   i32.add
   local.get $3
   i32.const -4
   i32.and
   i32.add
   local.tee $3
   i32.store
  end
  local.get $4
  local.get $2
  i32.const 2
  i32.or
  i32.store
  local.get $3
  i32.const -4
  i32.and
  local.tee $2
  i32.const 12
  i32.lt_u
  if
   i32.const 0
   i32.const 1312
   i32.const 233
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $4
  local.get $1
  i32.const 4
  i32.add
  local.get $2
  i32.add
  i32.ne
  if
   i32.const 0
   i32.const 1312
   i32.const 234
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $4
  i32.const 4
  i32.sub
  local.get $1
  i32.store
  local.get $2
  i32.const 256
  i32.lt_u
  if (result i32)
   local.get $2
   i32.const 4
   i32.shr_u
  else
   i32.const 31
   i32.const 1073741820
   local.get $2
   local.get $2
   i32.const 1073741820
   i32.ge_u
   select
   local.tee $2
   i32.clz
   i32.sub
   local.tee $3
   i32.const 7
   i32.sub
   local.set $5
   local.get $2
   local.get $3
   i32.const 4
   i32.sub
   i32.shr_u
   i32.const 16
   i32.xor
  end
  local.tee $2
  i32.const 16
  i32.lt_u
  local.get $5
  i32.const 23
  i32.lt_u
  i32.and
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 251
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $0
  local.get $5
  i32.const 4
  i32.shl
  local.get $2
  i32.add
  i32.const 2
  i32.shl
  i32.add
  i32.load offset=96
  local.set $3
  local.get $1
  i32.const 0
  i32.store offset=4
  local.get $1
  local.get $3
  i32.store offset=8
  local.get $3
  if
   local.get $3
   local.get $1
   i32.store offset=4
  end
  local.get $0
  local.get $5
  i32.const 4
  i32.shl
  local.get $2
  i32.add
  i32.const 2
  i32.shl
  i32.add
  local.get $1
  i32.store offset=96
  local.get $0
  local.get $0
  i32.load
  i32.const 1
  local.get $5
  i32.shl
  i32.or
  i32.store
  local.get $0
  local.get $5
  i32.const 2
  i32.shl
  i32.add
  local.tee $0
  local.get $0
  i32.load offset=4
  i32.const 1
  local.get $2
  i32.shl
  i32.or
  i32.store offset=4
 )
 (func $~lib/rt/tcms/Object#get:size (param $0 i32) (result i32)
  local.get $0
  i32.load
  i32.const -4
  i32.and
  i32.const 4
  i32.add
 )
 (func $supercargo/fail (param $0 i32)
  i32.const 1
  global.set $~argumentsLength
  local.get $0
  call $~lib/string/String.UTF8.encode@varargs
  local.tee $0
  local.get $0
  call $~lib/arraybuffer/ArrayBuffer#get:byteLength
  call $supercargo/importFail
 )
 (func $~lib/util/string/isSpace (param $0 i32) (result i32)
  local.get $0
  i32.const 5760
  i32.lt_u
  if
   local.get $0
   i32.const 128
   i32.or
   i32.const 160
   i32.eq
   local.get $0
   i32.const 9
   i32.sub
   i32.const 4
   i32.le_u
   i32.or
   return
  end
  local.get $0
  i32.const -8192
  i32.add
  i32.const 10
  i32.le_u
  if
   i32.const 1
   return
  end
  local.get $0
  i32.const 5760
  i32.eq
  local.get $0
  i32.const 8232
  i32.eq
  i32.or
  local.get $0
  i32.const 8233
  i32.eq
  local.get $0
  i32.const 8239
  i32.eq
  i32.or
  i32.or
  local.get $0
  i32.const 8287
  i32.eq
  local.get $0
  i32.const 12288
  i32.eq
  i32.or
  local.get $0
  i32.const 65279
  i32.eq
  i32.or
  i32.or
  if
   i32.const 1
   return
  end
  i32.const 0
 )
 (func $~lib/util/string/compareImpl (param $0 i32) (param $1 i32) (param $2 i32) (param $3 i32) (result i32)
  (local $4 i32)
  local.get $0
  local.get $1
  i32.const 1
  i32.shl
  i32.add
  local.set $1
  loop $while-continue|0
   local.get $3
   local.tee $0
   i32.const 1
   i32.sub
   local.set $3
   local.get $0
   if
    local.get $1
    i32.load16_u
    local.tee $0
    local.get $2
    i32.load16_u
    local.tee $4
    i32.ne
    if
     local.get $0
     local.get $4
     i32.sub
     return
    end
    local.get $1
    i32.const 2
    i32.add
    local.set $1
    local.get $2
    i32.const 2
    i32.add
    local.set $2
    br $while-continue|0
   end
  end
  i32.const 0
 )
 (func $~lib/util/number/utoa_dec_simple<u32> (param $0 i32) (param $1 i32) (param $2 i32)
  loop $do-loop|0
   local.get $0
   local.get $2
   i32.const 1
   i32.sub
   local.tee $2
   i32.const 1
   i32.shl
   i32.add
   local.get $1
   i32.const 10
   i32.rem_u
   i32.const 48
   i32.add
   i32.store16
   local.get $1
   i32.const 10
   i32.div_u
   local.tee $1
   br_if $do-loop|0
  end
 )
 (func $~lib/util/number/decimalCount32 (param $0 i32) (result i32)
  local.get $0
  i32.const 10
  i32.ge_u
  i32.const 1
  i32.add
  local.get $0
  i32.const 10000
  i32.ge_u
  i32.const 3
  i32.add
  local.get $0
  i32.const 1000
  i32.ge_u
  i32.add
  local.get $0
  i32.const 100
  i32.lt_u
  select
  local.get $0
  i32.const 1000000
  i32.ge_u
  i32.const 6
  i32.add
  local.get $0
  i32.const 1000000000
  i32.ge_u
  i32.const 8
  i32.add
  local.get $0
  i32.const 100000000
  i32.ge_u
  i32.add
  local.get $0
  i32.const 10000000
  i32.lt_u
  select
  local.get $0
  i32.const 100000
  i32.lt_u
  select
 )
 (func $~lib/string/String.__eq (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  local.get $0
  local.get $1
  i32.eq
  if
   i32.const 1
   return
  end
  local.get $1
  i32.eqz
  local.get $0
  i32.eqz
  i32.or
  if
   i32.const 0
   return
  end
  local.get $1
  call $~lib/string/String#get:length
  local.get $0
  call $~lib/string/String#get:length
  local.tee $2
  i32.ne
  if
   i32.const 0
   return
  end
  local.get $0
  i32.const 0
  local.get $1
  local.get $2
  call $~lib/util/string/compareImpl
  i32.eqz
 )
 (func $~lib/string/String#charCodeAt (param $0 i32) (param $1 i32) (result i32)
  local.get $0
  call $~lib/string/String#get:length
  local.get $1
  i32.le_u
  if
   i32.const -1
   return
  end
  local.get $0
  local.get $1
  i32.const 1
  i32.shl
  i32.add
  i32.load16_u
 )
 (func $~lib/rt/tlsf/searchBlock (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  local.get $1
  i32.const 256
  i32.lt_u
  if (result i32)
   local.get $1
   i32.const 4
   i32.shr_u
  else
   i32.const 31
   local.get $1
   call $~lib/rt/tlsf/roundSize
   local.tee $1
   i32.clz
   i32.sub
   local.tee $3
   i32.const 7
   i32.sub
   local.set $2
   local.get $1
   local.get $3
   i32.const 4
   i32.sub
   i32.shr_u
   i32.const 16
   i32.xor
  end
  local.tee $1
  i32.const 16
  i32.lt_u
  local.get $2
  i32.const 23
  i32.lt_u
  i32.and
  i32.eqz
  if
   i32.const 0
   i32.const 1312
   i32.const 334
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $0
  local.get $2
  i32.const 2
  i32.shl
  i32.add
  i32.load offset=4
  i32.const -1
  local.get $1
  i32.shl
  i32.and
  local.tee $1
  if (result i32)
   local.get $0
   local.get $1
   i32.ctz
   local.get $2
   i32.const 4
   i32.shl
   i32.add
   i32.const 2
   i32.shl
   i32.add
   i32.load offset=96
  else
   local.get $0
   i32.load
   i32.const -1
   local.get $2
   i32.const 1
   i32.add
   i32.shl
   i32.and
   local.tee $1
   if (result i32)
    local.get $0
    local.get $1
    i32.ctz
    local.tee $1
    i32.const 2
    i32.shl
    i32.add
    i32.load offset=4
    local.tee $2
    i32.eqz
    if
     i32.const 0
     i32.const 1312
     i32.const 347
     i32.const 18
     call $index/aborted
     unreachable
    end
    local.get $0
    local.get $2
    i32.ctz
    local.get $1
    i32.const 4
    i32.shl
    i32.add
    i32.const 2
    i32.shl
    i32.add
    i32.load offset=96
   else
    i32.const 0
   end
  end
 )
 (func $~lib/rt/tlsf/roundSize (param $0 i32) (result i32)
  local.get $0
  i32.const 1
  i32.const 27
  local.get $0
  i32.clz
  i32.sub
  i32.shl
  i32.add
  i32.const 1
  i32.sub
  local.get $0
  local.get $0
  i32.const 536870910
  i32.lt_u
  select
 )
 (func $~lib/rt/tlsf/prepareSize (param $0 i32) (result i32)
  local.get $0
  i32.const 1073741820
  i32.gt_u
  if
   i32.const 1184
   i32.const 1312
   i32.const 461
   i32.const 29
   call $index/aborted
   unreachable
  end
  i32.const 12
  local.get $0
  i32.const 19
  i32.add
  i32.const -16
  i32.and
  i32.const 4
  i32.sub
  local.get $0
  i32.const 12
  i32.le_u
  select
 )
 (func $~lib/rt/tlsf/prepareBlock (param $0 i32) (param $1 i32) (param $2 i32)
  (local $3 i32)
  (local $4 i32)
  local.get $1
  i32.load
  local.set $3
  local.get $2
  i32.const 4
  i32.add
  i32.const 15
  i32.and
  if
   i32.const 0
   i32.const 1312
   i32.const 361
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $3
  i32.const -4
  i32.and
  local.get $2
  i32.sub
  local.tee $4
  i32.const 16
  i32.ge_u
  if
   local.get $1
   local.get $2
   local.get $3
   i32.const 2
   i32.and
   i32.or
   i32.store
   local.get $1
   i32.const 4
   i32.add
   local.get $2
   i32.add
   local.tee $1
   local.get $4
   i32.const 4
   i32.sub
   i32.const 1
   i32.or
   i32.store
   local.get $0
   local.get $1
   call $~lib/rt/tlsf/insertBlock
  else
   local.get $1
   local.get $3
   i32.const -2
   i32.and
   i32.store
   local.get $1
   i32.const 4
   i32.add
   local.get $1
   i32.load
   i32.const -4
   i32.and
   i32.add
   local.tee $0
   local.get $0
   i32.load
   i32.const -3
   i32.and
   i32.store
  end
 )
 (func $~lib/rt/tlsf/moveBlock (param $0 i32) (param $1 i32) (param $2 i32) (result i32)
  local.get $0
  local.get $2
  call $~lib/rt/tlsf/allocateBlock
  local.tee $2
  i32.const 4
  i32.add
  local.get $1
  i32.const 4
  i32.add
  local.get $1
  i32.load
  i32.const -4
  i32.and
  memory.copy
  local.get $1
  i32.const 2780
  i32.ge_u
  if
   local.get $1
   local.get $1
   i32.load
   i32.const 1
   i32.or
   i32.store
   local.get $0
   local.get $1
   call $~lib/rt/tlsf/insertBlock
  end
  local.get $2
 )
 (func $~lib/rt/tlsf/initialize
  (local $0 i32)
  (local $1 i32)
  memory.size
  local.tee $1
  i32.const 0
  i32.le_s
  if (result i32)
   i32.const 1
   local.get $1
   i32.sub
   memory.grow
   i32.const 0
   i32.lt_s
  else
   i32.const 0
  end
  if
   unreachable
  end
  i32.const 2784
  i32.const 0
  i32.store
  i32.const 4352
  i32.const 0
  i32.store
  loop $for-loop|0
   local.get $0
   i32.const 23
   i32.lt_u
   if
    local.get $0
    i32.const 2
    i32.shl
    i32.const 2784
    i32.add
    i32.const 0
    i32.store offset=4
    i32.const 0
    local.set $1
    loop $for-loop|1
     local.get $1
     i32.const 16
     i32.lt_u
     if
      local.get $0
      i32.const 4
      i32.shl
      local.get $1
      i32.add
      i32.const 2
      i32.shl
      i32.const 2784
      i32.add
      i32.const 0
      i32.store offset=96
      local.get $1
      i32.const 1
      i32.add
      local.set $1
      br $for-loop|1
     end
    end
    local.get $0
    i32.const 1
    i32.add
    local.set $0
    br $for-loop|0
   end
  end
  i32.const 2784
  i32.const 4356
  memory.size
  i64.extend_i32_s
  i64.const 16
  i64.shl
  call $~lib/rt/tlsf/addMemory
  i32.const 2784
  global.set $~lib/rt/tlsf/ROOT
 )
 (func $~lib/rt/tlsf/checkUsedBlock (param $0 i32) (result i32)
  (local $1 i32)
  local.get $0
  i32.const 4
  i32.sub
  local.set $1
  local.get $0
  i32.const 15
  i32.and
  i32.const 1
  local.get $0
  select
  if (result i32)
   i32.const 1
  else
   local.get $1
   i32.load
   i32.const 1
   i32.and
  end
  if
   i32.const 0
   i32.const 1312
   i32.const 562
   i32.const 3
   call $index/aborted
   unreachable
  end
  local.get $1
 )
 (func $~lib/rt/tlsf/allocateBlock (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  local.get $0
  local.get $1
  call $~lib/rt/tlsf/prepareSize
  local.tee $2
  call $~lib/rt/tlsf/searchBlock
  local.tee $1
  i32.eqz
  if
   i32.const 4
   local.get $0
   i32.load offset=1568
   memory.size
   local.tee $3
   i32.const 16
   i32.shl
   i32.const 4
   i32.sub
   i32.ne
   i32.shl
   local.get $2
   call $~lib/rt/tlsf/roundSize
   local.get $2
   local.get $2
   i32.const 256
   i32.ge_u
   select
   i32.add
   i32.const 65535
   i32.add
   i32.const -65536
   i32.and
   i32.const 16
   i32.shr_u
   local.set $1
   local.get $3
   local.get $1
   local.get $1
   local.get $3
   i32.lt_s
   select
   memory.grow
   i32.const 0
   i32.lt_s
   if
    local.get $1
    memory.grow
    i32.const 0
    i32.lt_s
    if
     unreachable
    end
   end
   local.get $0
   local.get $3
   i32.const 16
   i32.shl
   memory.size
   i64.extend_i32_s
   i64.const 16
   i64.shl
   call $~lib/rt/tlsf/addMemory
   local.get $0
   local.get $2
   call $~lib/rt/tlsf/searchBlock
   local.tee $1
   i32.eqz
   if
    i32.const 0
    i32.const 1312
    i32.const 499
    i32.const 16
    call $index/aborted
    unreachable
   end
  end
  local.get $2
  local.get $1
  i32.load
  i32.const -4
  i32.and
  i32.gt_u
  if
   i32.const 0
   i32.const 1312
   i32.const 501
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $0
  local.get $1
  call $~lib/rt/tlsf/removeBlock
  local.get $0
  local.get $1
  local.get $2
  call $~lib/rt/tlsf/prepareBlock
  local.get $1
 )
 (func $~lib/rt/tlsf/addMemory (param $0 i32) (param $1 i32) (param $2 i64)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  local.get $2
  local.get $1
  i64.extend_i32_u
  i64.lt_u
  if
   i32.const 0
   i32.const 1312
   i32.const 382
   i32.const 14
   call $index/aborted
   unreachable
  end
  local.get $1
  i32.const 19
  i32.add
  i32.const -16
  i32.and
  i32.const 4
  i32.sub
  local.set $1
  local.get $0
  i32.load offset=1568
  local.tee $3
  if
   local.get $3
   i32.const 4
   i32.add
   local.get $1
   i32.gt_u
   if
    i32.const 0
    i32.const 1312
    i32.const 389
    i32.const 16
    call $index/aborted
    unreachable
   end
   local.get $3
   local.get $1
   i32.const 16
   i32.sub
   local.tee $5
   i32.eq
   if
    local.get $3
    i32.load
    local.set $4
    local.get $5
    local.set $1
   end
  else
   local.get $0
   i32.const 1572
   i32.add
   local.get $1
   i32.gt_u
   if
    i32.const 0
    i32.const 1312
    i32.const 402
    i32.const 5
    call $index/aborted
    unreachable
   end
  end
  local.get $2
  i32.wrap_i64
  i32.const -16
  i32.and
  local.get $1
  i32.sub
  local.tee $3
  i32.const 20
  i32.lt_u
  if
   return
  end
  local.get $1
  local.get $4
  i32.const 2
  i32.and
  local.get $3
  i32.const 8
  i32.sub
  local.tee $3
  i32.const 1
  i32.or
  i32.or
  i32.store
  local.get $1
  i32.const 0
  i32.store offset=4
  local.get $1
  i32.const 0
  i32.store offset=8
  local.get $1
  i32.const 4
  i32.add
  local.get $3
  i32.add
  local.tee $3
  i32.const 2
  i32.store
  local.get $0
  local.get $3
  i32.store offset=1568
  local.get $0
  local.get $1
  call $~lib/rt/tlsf/insertBlock
 )
 (func $~lib/rt/tlsf/__alloc (param $0 i32) (result i32)
  global.get $~lib/rt/tlsf/ROOT
  i32.eqz
  if
   call $~lib/rt/tlsf/initialize
  end
  global.get $~lib/rt/tlsf/ROOT
  local.get $0
  call $~lib/rt/tlsf/allocateBlock
  i32.const 4
  i32.add
 )
 (func $~lib/rt/tcms/Object#set:next (param $0 i32) (param $1 i32)
  local.get $0
  local.get $1
  local.get $0
  i32.load offset=4
  i32.const 3
  i32.and
  i32.or
  i32.store offset=4
 )
 (func $supercargo/podAttribute (param $0 i32) (result i32)
  i32.const 1
  global.set $~argumentsLength
  local.get $0
  call $~lib/string/String.UTF8.encode@varargs
  local.tee $0
  local.get $0
  call $~lib/arraybuffer/ArrayBuffer#get:byteLength
  i32.const 1
  call $supercargo/importPodAttribute
 )
 (func $supercargo/Frame#row (param $0 i32) (param $1 i32) (result i32)
  local.get $0
  i32.load offset=8
  local.get $1
  i32.const 2
  i32.shl
  i32.add
  i32.load
 )
 (func $supercargo/Frame#podNumber (param $0 i32) (param $1 i32) (result f64)
  local.get $0
  i32.load offset=16
  local.get $1
  i32.const 3
  i32.shl
  i32.add
  f64.load
 )
 (func $index/share (param $0 f64) (param $1 f64) (result f64)
  local.get $0
  local.get $1
  f64.div
  f64.const 1
  f64.min
  f64.const 0
  f64.max
  f64.const 0
  local.get $1
  f64.const 0
  f64.gt
  select
 )
 (func $~start
  i32.const 1364
  i32.const 1360
  i32.store
  i32.const 1368
  i32.const 1360
  i32.store
  i32.const 1360
  global.set $~lib/rt/tcms/fromSpace
 )
 (func $~lib/string/String.UTF8.encodeUnsafe (param $0 i32) (param $1 i32) (param $2 i32)
  (local $3 i32)
  (local $4 i32)
  local.get $0
  local.get $1
  i32.const 1
  i32.shl
  i32.add
  local.set $3
  local.get $2
  local.set $1
  loop $while-continue|0
   local.get $0
   local.get $3
   i32.lt_u
   if
    local.get $0
    i32.load16_u
    local.tee $2
    i32.const 128
    i32.lt_u
    if (result i32)
     local.get $1
     local.get $2
     i32.store8
     local.get $1
     i32.const 1
     i32.add
    else
     local.get $2
     i32.const 2048
     i32.lt_u
     if (result i32)
      local.get $1
      local.get $2
      i32.const 6
      i32.shr_u
      i32.const 192
      i32.or
      local.get $2
      i32.const 63
      i32.and
      i32.const 128
      i32.or
      i32.const 8
      i32.shl
      i32.or
      i32.store16
      local.get $1
      i32.const 2
      i32.add
     else
      local.get $2
      i32.const 56320
      i32.lt_u
      local.get $0
      i32.const 2
      i32.add
      local.get $3
      i32.lt_u
      i32.and
      local.get $2
      i32.const 63488
      i32.and
      i32.const 55296
      i32.eq
      i32.and
      if
       local.get $0
       i32.load16_u offset=2
       local.tee $4
       i32.const 64512
       i32.and
       i32.const 56320
       i32.eq
       if
        local.get $1
        local.get $2
        i32.const 1023
        i32.and
        i32.const 10
        i32.shl
        i32.const 65536
        i32.add
        local.get $4
        i32.const 1023
        i32.and
        i32.or
        local.tee $2
        i32.const 63
        i32.and
        i32.const 128
        i32.or
        i32.const 24
        i32.shl
        local.get $2
        i32.const 6
        i32.shr_u
        i32.const 63
        i32.and
        i32.const 128
        i32.or
        i32.const 16
        i32.shl
        i32.or
        local.get $2
        i32.const 12
        i32.shr_u
        i32.const 63
        i32.and
        i32.const 128
        i32.or
        i32.const 8
        i32.shl
        i32.or
        local.get $2
        i32.const 18
        i32.shr_u
        i32.const 240
        i32.or
        i32.or
        i32.store
        local.get $1
        i32.const 4
        i32.add
        local.set $1
        local.get $0
        i32.const 4
        i32.add
        local.set $0
        br $while-continue|0
       end
      end
      local.get $1
      local.get $2
      i32.const 12
      i32.shr_u
      i32.const 224
      i32.or
      local.get $2
      i32.const 6
      i32.shr_u
      i32.const 63
      i32.and
      i32.const 128
      i32.or
      i32.const 8
      i32.shl
      i32.or
      i32.store16
      local.get $1
      local.get $2
      i32.const 63
      i32.and
      i32.const 128
      i32.or
      i32.store8 offset=2
      local.get $1
      i32.const 3
      i32.add
     end
    end
    local.set $1
    local.get $0
    i32.const 2
    i32.add
    local.set $0
    br $while-continue|0
   end
  end
 )
 (func $~lib/string/String.UTF8.decodeUnsafe (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  (local $6 i32)
  local.get $0
  local.get $1
  i32.add
  local.tee $3
  local.get $0
  i32.lt_u
  if
   i32.const 0
   i32.const 1792
   i32.const 770
   i32.const 7
   call $index/aborted
   unreachable
  end
  local.get $1
  i32.const 1
  i32.shl
  i32.const 2
  call $~lib/rt/tcms/__new
  local.tee $4
  local.set $1
  loop $while-continue|0
   local.get $0
   local.get $3
   i32.lt_u
   if
    block $while-break|0
     local.get $0
     i32.load8_u
     local.set $5
     local.get $0
     i32.const 1
     i32.add
     local.set $0
     local.get $5
     i32.const 128
     i32.and
     if
      local.get $0
      local.get $3
      i32.eq
      br_if $while-break|0
      local.get $0
      i32.load8_u
      i32.const 63
      i32.and
      local.set $6
      local.get $0
      i32.const 1
      i32.add
      local.set $0
      local.get $5
      i32.const 224
      i32.and
      i32.const 192
      i32.eq
      if
       local.get $1
       local.get $5
       i32.const 31
       i32.and
       i32.const 6
       i32.shl
       local.get $6
       i32.or
       i32.store16
      else
       local.get $0
       local.get $3
       i32.eq
       br_if $while-break|0
       local.get $0
       i32.load8_u
       i32.const 63
       i32.and
       local.set $2
       local.get $0
       i32.const 1
       i32.add
       local.set $0
       local.get $5
       i32.const 240
       i32.and
       i32.const 224
       i32.eq
       if
        local.get $5
        i32.const 15
        i32.and
        i32.const 12
        i32.shl
        local.get $6
        i32.const 6
        i32.shl
        i32.or
        local.get $2
        i32.or
        local.set $2
       else
        local.get $0
        local.get $3
        i32.eq
        br_if $while-break|0
        local.get $0
        i32.load8_u
        i32.const 63
        i32.and
        local.get $5
        i32.const 7
        i32.and
        i32.const 18
        i32.shl
        local.get $6
        i32.const 12
        i32.shl
        i32.or
        local.get $2
        i32.const 6
        i32.shl
        i32.or
        i32.or
        local.set $2
        local.get $0
        i32.const 1
        i32.add
        local.set $0
       end
       local.get $2
       i32.const 65536
       i32.lt_u
       if
        local.get $1
        local.get $2
        i32.store16
       else
        local.get $1
        local.get $2
        i32.const 65536
        i32.sub
        local.tee $2
        i32.const 10
        i32.shr_u
        i32.const 55296
        i32.or
        local.get $2
        i32.const 1023
        i32.and
        i32.const 56320
        i32.or
        i32.const 16
        i32.shl
        i32.or
        i32.store
        local.get $1
        i32.const 2
        i32.add
        local.set $1
       end
      end
     else
      local.get $1
      local.get $5
      i32.store16
     end
     local.get $1
     i32.const 2
     i32.add
     local.set $1
     br $while-continue|0
    end
   end
  end
  local.get $4
  local.get $1
  local.get $4
  i32.sub
  call $~lib/rt/tcms/__renew
 )
 (func $~lib/rt/tcms/__renew (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  (local $6 i32)
  (local $7 i32)
  (local $8 i32)
  local.get $0
  i32.const 20
  i32.sub
  local.set $2
  local.get $0
  i32.const 2780
  i32.lt_u
  if
   local.get $1
   local.get $2
   i32.load offset=12
   call $~lib/rt/tcms/__new
   local.tee $3
   local.get $0
   local.get $1
   local.get $2
   i32.load offset=16
   local.tee $0
   local.get $0
   local.get $1
   i32.gt_u
   select
   memory.copy
   local.get $3
   return
  end
  local.get $1
  i32.const 1073741804
  i32.gt_u
  if
   i32.const 1184
   i32.const 1248
   i32.const 143
   i32.const 30
   call $index/aborted
   unreachable
  end
  global.get $~lib/rt/tcms/total
  local.get $2
  call $~lib/rt/tcms/Object#get:size
  i32.sub
  global.set $~lib/rt/tcms/total
  global.get $~lib/rt/tlsf/ROOT
  i32.eqz
  if
   call $~lib/rt/tlsf/initialize
  end
  local.get $1
  i32.const 16
  i32.add
  local.set $2
  local.get $0
  i32.const 16
  i32.sub
  local.tee $0
  i32.const 2780
  i32.lt_u
  if (result i32)
   global.get $~lib/rt/tlsf/ROOT
   local.get $0
   call $~lib/rt/tlsf/checkUsedBlock
   local.get $2
   call $~lib/rt/tlsf/moveBlock
  else
   block $__inlined_func$~lib/rt/tlsf/reallocateBlock$2 (result i32)
    global.get $~lib/rt/tlsf/ROOT
    local.set $5
    local.get $0
    call $~lib/rt/tlsf/checkUsedBlock
    local.set $0
    block $folding-inner0
     local.get $2
     call $~lib/rt/tlsf/prepareSize
     local.tee $3
     local.get $0
     i32.load
     local.tee $6
     i32.const -4
     i32.and
     local.tee $4
     i32.le_u
     br_if $folding-inner0
     local.get $0
     i32.const 4
     i32.add
     local.get $0
     i32.load
     i32.const -4
     i32.and
     i32.add
     local.tee $7
     i32.load
     local.tee $8
     i32.const 1
     i32.and
     if
      local.get $4
      i32.const 4
      i32.add
      local.get $8
      i32.const -4
      i32.and
      i32.add
      local.tee $4
      local.get $3
      i32.ge_u
      if
       local.get $5
       local.get $7
       call $~lib/rt/tlsf/removeBlock
       local.get $0
       local.get $6
       i32.const 3
       i32.and
       local.get $4
       i32.or
       i32.store
       br $folding-inner0
      end
     end
     local.get $5
     local.get $0
     local.get $2
     call $~lib/rt/tlsf/moveBlock
     br $__inlined_func$~lib/rt/tlsf/reallocateBlock$2
    end
    local.get $5
    local.get $0
    local.get $3
    call $~lib/rt/tlsf/prepareBlock
    local.get $0
   end
  end
  i32.const 20
  i32.add
  local.tee $0
  i32.const 20
  i32.sub
  local.tee $2
  local.get $1
  i32.store offset=16
  local.get $2
  i32.load offset=4
  i32.const -4
  i32.and
  local.get $2
  i32.store offset=8
  local.get $2
  i32.load offset=8
  local.get $2
  call $~lib/rt/tcms/Object#set:next
  local.get $2
  call $~lib/rt/tcms/Object#get:size
  global.get $~lib/rt/tcms/total
  i32.add
  global.set $~lib/rt/tcms/total
  local.get $0
 )
 (func $supercargo/supercargo_alloc (param $0 i32) (result i32)
  local.get $0
  call $~lib/rt/tlsf/__alloc
 )
 (func $supercargo/supercargo_abi (result i32)
  i32.const 1
 )
 (func $index/supercargo_score (param $0 i32) (result i32)
  (local $1 i32)
  (local $2 i32)
  loop $for-loop|0
   local.get $2
   local.get $0
   i32.load offset=4
   i32.lt_u
   if
    local.get $0
    i32.load offset=28
    local.get $0
    local.get $2
    call $supercargo/Frame#row
    local.tee $1
    i32.const 3
    i32.shl
    i32.add
    local.get $0
    global.get $index/freeCpu
    local.get $1
    call $supercargo/Frame#nodeNumber
    local.get $0
    global.get $index/wantedCpu
    call $supercargo/Frame#podNumber
    f64.sub
    local.get $0
    global.get $index/cpu
    local.get $1
    call $supercargo/Frame#nodeNumber
    call $index/share
    local.get $0
    global.get $index/freeMemory
    local.get $1
    call $supercargo/Frame#nodeNumber
    local.get $0
    global.get $index/wantedMemory
    call $supercargo/Frame#podNumber
    f64.sub
    local.get $0
    global.get $index/memory
    local.get $1
    call $supercargo/Frame#nodeNumber
    call $index/share
    f64.min
    f64.const 100
    f64.mul
    i64.trunc_sat_f64_s
    i64.store
    local.get $2
    i32.const 1
    i32.add
    local.set $2
    br $for-loop|0
   end
  end
  i32.const 0
 )
 (func $index/supercargo_init (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  local.get $0
  local.get $1
  call $~lib/string/String.UTF8.decodeUnsafe
  local.tee $0
  call $~lib/string/String#get:length
  local.tee $1
  i32.const 0
  local.get $1
  i32.const 0
  i32.le_s
  select
  local.tee $2
  i32.const 1840
  call $~lib/string/String#get:length
  local.tee $3
  i32.add
  local.get $1
  i32.gt_s
  if (result i32)
   i32.const 1
  else
   local.get $0
   local.get $2
   i32.const 1840
   local.get $3
   call $~lib/util/string/compareImpl
  end
  if
   local.get $0
   i32.const 2032
   call $~lib/string/String.__eq
   i32.eqz
   if
    i32.const 2064
    call $supercargo/fail
    i32.const 2
    return
   end
  else
   local.get $0
   i32.const 1840
   call $~lib/string/String#get:length
   call $index/degrees
   global.set $index/limit
   global.get $index/limit
   i32.const 0
   i32.lt_s
   if
    i32.const 1920
    call $supercargo/fail
    i32.const 2
    return
   end
  end
  i32.const 2192
  call $supercargo/nodeColumn
  global.set $index/temperature
  i32.const 2288
  call $supercargo/nodeColumn
  global.set $index/cpu
  i32.const 2352
  call $supercargo/nodeColumn
  global.set $index/freeCpu
  i32.const 2400
  call $supercargo/nodeColumn
  global.set $index/memory
  i32.const 2464
  call $supercargo/nodeColumn
  global.set $index/freeMemory
  i32.const 2512
  call $supercargo/podAttribute
  global.set $index/wantedCpu
  i32.const 2560
  call $supercargo/podAttribute
  global.set $index/wantedMemory
  i32.const 1
  global.set $~argumentsLength
  i32.const 2608
  call $~lib/string/String.UTF8.encode@varargs
  local.tee $0
  local.get $0
  call $~lib/arraybuffer/ArrayBuffer#get:byteLength
  call $supercargo/importIntern
  global.set $index/tooHot
  i32.const 2672
  global.get $index/limit
  local.tee $0
  if (result i32)
   i32.const 0
   local.get $0
   i32.sub
   local.get $0
   local.get $0
   i32.const 31
   i32.shr_u
   i32.const 1
   i32.shl
   local.tee $0
   select
   local.tee $1
   call $~lib/util/number/decimalCount32
   local.tee $2
   i32.const 1
   i32.shl
   local.get $0
   i32.add
   i32.const 2
   call $~lib/rt/tcms/__new
   local.tee $3
   local.get $0
   i32.add
   local.get $1
   local.get $2
   call $~lib/util/number/utoa_dec_simple<u32>
   local.get $0
   if
    local.get $3
    i32.const 45
    i32.store16
   end
   local.get $3
  else
   i32.const 1600
  end
  call $~lib/string/String.__concat
  i32.const 2752
  call $~lib/string/String.__concat
  local.set $0
  i32.const 1
  global.set $~argumentsLength
  i32.const 0
  local.get $0
  call $~lib/string/String.UTF8.encode@varargs
  local.tee $0
  local.get $0
  call $~lib/arraybuffer/ArrayBuffer#get:byteLength
  call $supercargo/importLog
  i32.const 0
 )
 (func $index/supercargo_filter (param $0 i32) (result i32)
  (local $1 i32)
  (local $2 i32)
  loop $for-loop|0
   local.get $1
   local.get $0
   i32.load offset=4
   i32.lt_u
   if
    local.get $0
    global.get $index/temperature
    local.get $0
    local.get $1
    call $supercargo/Frame#row
    local.tee $2
    call $supercargo/Frame#nodeNumber
    global.get $index/limit
    f64.convert_i32_s
    f64.gt
    if
     local.get $2
     i32.const 2
     i32.shl
     local.tee $2
     local.get $0
     i32.load offset=32
     i32.add
     i32.const 1
     i32.store
     local.get $2
     local.get $0
     i32.load offset=36
     i32.add
     global.get $index/tooHot
     i32.store
    end
    local.get $1
    i32.const 1
    i32.add
    local.set $1
    br $for-loop|0
   end
  end
  i32.const 0
 )
 (func $index/degrees (param $0 i32) (param $1 i32) (result i32)
  (local $2 i32)
  (local $3 i32)
  (local $4 i32)
  (local $5 i32)
  loop $while-continue|0
   local.get $0
   call $~lib/string/String#get:length
   local.get $1
   i32.gt_s
   if (result i32)
    local.get $0
    local.get $1
    call $~lib/string/String#charCodeAt
    i32.const 32
    i32.eq
   else
    i32.const 0
   end
   if
    local.get $1
    i32.const 1
    i32.add
    local.set $1
    br $while-continue|0
   end
  end
  local.get $1
  local.set $2
  loop $for-loop|1
   local.get $1
   local.get $2
   i32.const 4
   i32.add
   i32.lt_s
   local.get $0
   call $~lib/string/String#get:length
   local.get $1
   i32.gt_s
   i32.and
   if
    local.get $0
    local.get $1
    call $~lib/string/String#charCodeAt
    i32.const 48
    i32.sub
    local.tee $5
    i32.const 0
    i32.lt_s
    local.get $5
    i32.const 9
    i32.gt_s
    i32.or
    i32.eqz
    if
     local.get $4
     i32.const 10
     i32.mul
     local.get $5
     i32.add
     local.set $4
     local.get $1
     i32.const 1
     i32.add
     local.set $1
     br $for-loop|1
    end
   end
  end
  local.get $4
  i32.const -1
  local.get $1
  local.get $2
  i32.gt_s
  if (result i32)
   i32.const 1
   global.set $~argumentsLength
   block $__inlined_func$~lib/string/String#substring$3 (result i32)
    local.get $1
    i32.const 0
    local.get $1
    i32.const 0
    i32.gt_s
    select
    local.tee $1
    local.get $0
    call $~lib/string/String#get:length
    local.tee $2
    local.get $1
    local.get $2
    i32.lt_s
    select
    local.tee $1
    local.get $2
    local.get $1
    local.get $2
    i32.lt_s
    select
    i32.const 1
    i32.shl
    local.set $4
    i32.const 1152
    local.get $1
    local.get $2
    local.get $1
    local.get $2
    i32.gt_s
    select
    i32.const 1
    i32.shl
    local.tee $1
    local.get $4
    i32.sub
    local.tee $5
    i32.eqz
    br_if $__inlined_func$~lib/string/String#substring$3
    drop
    local.get $0
    local.get $4
    i32.eqz
    local.get $1
    local.get $2
    i32.const 1
    i32.shl
    i32.eq
    i32.and
    br_if $__inlined_func$~lib/string/String#substring$3
    drop
    local.get $5
    i32.const 2
    call $~lib/rt/tcms/__new
    local.tee $1
    local.get $0
    local.get $4
    i32.add
    local.get $5
    memory.copy
    local.get $1
   end
   local.tee $1
   call $~lib/string/String#get:length
   local.tee $0
   i32.const 1
   i32.shl
   local.set $2
   loop $while-continue|00
    local.get $2
    if (result i32)
     local.get $1
     local.get $2
     i32.add
     i32.const 2
     i32.sub
     i32.load16_u
     call $~lib/util/string/isSpace
    else
     i32.const 0
    end
    if
     local.get $2
     i32.const 2
     i32.sub
     local.set $2
     br $while-continue|00
    end
   end
   loop $while-continue|1
    local.get $2
    local.get $3
    i32.gt_u
    if (result i32)
     local.get $1
     local.get $3
     i32.add
     i32.load16_u
     call $~lib/util/string/isSpace
    else
     i32.const 0
    end
    if
     local.get $3
     i32.const 2
     i32.add
     local.set $3
     local.get $2
     i32.const 2
     i32.sub
     local.set $2
     br $while-continue|1
    end
   end
   block $__inlined_func$~lib/string/String#trim
    local.get $2
    i32.eqz
    if
     i32.const 1152
     local.set $1
     br $__inlined_func$~lib/string/String#trim
    end
    local.get $3
    i32.eqz
    local.get $2
    local.get $0
    i32.const 1
    i32.shl
    i32.eq
    i32.and
    br_if $__inlined_func$~lib/string/String#trim
    local.get $2
    i32.const 2
    call $~lib/rt/tcms/__new
    local.tee $0
    local.get $1
    local.get $3
    i32.add
    local.get $2
    memory.copy
    local.get $0
    local.set $1
   end
   local.get $1
   i32.const 1888
   call $~lib/string/String.__eq
  else
   i32.const 0
  end
  select
 )
)

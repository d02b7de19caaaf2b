//! What a function costs.

use wasmparser::{
    BlockType, CompositeInnerType, FuncToValidate, FuncType, FuncValidatorAllocations, FunctionBody,
    Operator, ValidatorResources, WasmModuleResources,
};

use super::invalid;
use crate::{
    module::Unfit,
    settings::{Bytes, GuestLimits},
};

/// Values that a function returns, and that a block takes and returns: a branch of two bytes moves them all.
pub(super) const MAX_MOVED: usize = 16;
/// Loops in loops: what is kept for one is kept for each of them.
const MAX_LOOP_DEPTH: usize = 64;
const TOO_LARGE: &str = "raise `functionSize` in its arguments, or divide the function";

/// What is kept at a loop's beginning comes from two sides, and fuel and time are looked at there.
const LOOP_BLOCKS: u64 = 64;
const INSTRUCTION_COST: u64 = 16;
/// Is the function there yet, and has it the right type?
const INDIRECT_CALL_COST: u64 = 512;

/// What a function costs, unless that is too much.
pub(super) fn check(
    function: FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    limits: &GuestLimits,
    kept: &mut FuncValidatorAllocations,
) -> Result<u64, Unfit> {
    let index = function.index;
    let bytes = body.range().len() as u64;
    if bytes > limits.function_bytes {
        let (bytes, limit) = (Bytes(bytes), Bytes(limits.function_bytes));
        let what = format!("its function {index} has {bytes}, and may have {limit}");
        return Err(Unfit::new(what).hint(TOO_LARGE));
    }
    let mut validator = function.into_validator(std::mem::take(kept));
    let mut reader = body.get_binary_reader();
    validator.read_locals(&mut reader).map_err(invalid)?;
    let mut seen = Seen { locals: validator.len_locals().into(), blocks: 1, ..Seen::default() };
    while !reader.eof() {
        let at = reader.original_position();
        let operator = reader.peek_operator(&validator.visitor(at)).map_err(invalid)?;
        check_block_type(&operator, validator.resources())?;
        reader.visit_operator(&mut validator.visitor(at)).map_err(invalid)?.map_err(invalid)?;
        seen.add(&operator, validator.operand_stack_height());
        if seen.loops > MAX_LOOP_DEPTH {
            let what = format!("its function {index} has more than {MAX_LOOP_DEPTH} loops in each other");
            return Err(Unfit::new(what));
        }
    }
    reader.finish_expression(&validator.visitor(reader.original_position())).map_err(invalid)?;
    *kept = validator.into_allocations();
    if seen.cost() > limits.function_cost() {
        let Seen { locals, operands, blocks, .. } = seen;
        let what = format!(
            "its function {index} is too much work to compile: it has {locals} locals and {operands} operands, \
             and {blocks} blocks and branches"
        );
        return Err(Unfit::new(what).hint(TOO_LARGE));
    }
    Ok(seen.cost())
}

/// What has been seen of a function.
#[derive(Default)]
struct Seen {
    locals: u64,
    /// At most, at any moment.
    operands: u64,
    /// Roughly.
    blocks: u64,
    instructions: u64,
    indirect_calls: u64,
    /// Whether each block that is open is a loop.
    open: Vec<bool>,
    /// How many of them are.
    loops: usize,
}

impl Seen {
    fn add(&mut self, operator: &Operator<'_>, operands: u32) {
        self.instructions += 1;
        self.operands = self.operands.max(operands.into());
        self.blocks += blocks_of(operator);
        match operator {
            Operator::CallIndirect { .. }
            | Operator::ReturnCallIndirect { .. }
            | Operator::TableGet { .. }
            | Operator::TableSet { .. } => self.indirect_calls += 1,
            Operator::Loop { .. } => {
                self.open.push(true);
                self.loops += 1;
            }
            Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => self.open.push(false),
            Operator::End => self.loops -= usize::from(self.open.pop().unwrap_or(false)),
            _ => {}
        }
    }

    fn cost(&self) -> u64 {
        let values = self.locals + self.operands;
        // Each is kept in each block, and all of them want a register at the same time.
        let keeping = values.saturating_mul(self.blocks).saturating_add(values.saturating_mul(values) / 4);
        let rest = self.instructions * INSTRUCTION_COST + self.indirect_calls * INDIRECT_CALL_COST;
        keeping.saturating_add(rest)
    }
}

/// The blocks that the compiler makes of an instruction, roughly.
fn blocks_of(operator: &Operator<'_>) -> u64 {
    match operator {
        Operator::Loop { .. } => LOOP_BLOCKS,
        Operator::BrTable { targets } => 1 + u64::from(targets.len()),
        Operator::Block { .. }
        | Operator::If { .. }
        | Operator::Else
        | Operator::TryTable { .. }
        | Operator::Br { .. }
        | Operator::BrIf { .. }
        | Operator::BrOnNull { .. }
        | Operator::BrOnNonNull { .. }
        | Operator::Return
        | Operator::Unreachable => 1,
        Operator::CallIndirect { .. } | Operator::ReturnCallIndirect { .. } | Operator::TableGet { .. } => 2,
        _ => 0,
    }
}

fn check_block_type(operator: &Operator<'_>, resources: &impl WasmModuleResources) -> Result<(), Unfit> {
    let (Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty }) = operator
    else {
        return Ok(());
    };
    let BlockType::FuncType(index) = blockty else { return Ok(()) };
    let moves = |ty: &FuncType| ty.params().len() + ty.results().len();
    let ty = resources.sub_type_at(*index).map(|ty| &ty.composite_type.inner);
    if let Some(CompositeInnerType::Func(ty)) = ty
        && moves(ty) > MAX_MOVED
    {
        let what = format!("a block of it moves {} values, and may move {MAX_MOVED}", moves(ty));
        return Err(Unfit::new(what));
    }
    Ok(())
}

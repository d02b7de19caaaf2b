//! What it would cost to compile a module, counted before the compiler sees it: nothing stops the compiler once it runs.
//!
//! The compiler's time and memory grow with what a function has to keep (locals and operands) times where it has to keep it
//! (blocks), so that a small file can take minutes and gigabytes. Both are counted while the function is validated, which
//! takes one pass. The rest grows with the number of instructions.

use wasmparser::{
    BlockType, CompositeInnerType, FuncToValidate, FuncType, FuncValidatorAllocations, FunctionBody,
    Operator, Parser, Payload, ValidPayload, Validator, ValidatorResources, WasmFeatures,
    WasmModuleResources,
};

use crate::{
    module::Unfit,
    settings::{Bytes, Limits},
};

/// The compiler takes some time for each function, however small it is.
const MAX_FUNCTIONS: u32 = 20_000;
/// Of a function: calls have to move them.
const MAX_PARAMETERS: usize = 128;
/// Of a function, and of a block together with its parameters: one byte of a branch moves them all.
const MAX_RESULTS: usize = 16;

/// Refuses a module that would take too long to compile, and tells which limit it is.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), Unfit> {
    // Which features are on is the compiler's to check.
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut kept = FuncValidatorAllocations::default();
    let mut module_cost = 0u64;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        match &payload {
            Payload::FunctionSection(section) if section.count() > MAX_FUNCTIONS => {
                let count = section.count();
                return Err(Unfit::new(format!("it has {count} functions, and may have {MAX_FUNCTIONS}")));
            }
            Payload::TypeSection(section) => {
                for group in section.clone() {
                    let group = group.map_err(invalid)?;
                    group.types().try_for_each(|ty| check_type(&ty.composite_type.inner))?;
                }
            }
            _ => {}
        }
        if let ValidPayload::Func(function, body) = validator.payload(&payload).map_err(invalid)? {
            let cost = check_function(function, &body, limits, &mut kept)?;
            module_cost = module_cost.saturating_add(cost);
            if module_cost > limits.module_cost() {
                let what =
                    "it is too much work to compile: blocks × (locals + operands) of all functions together";
                let hint = "raise `moduleSize` in its arguments, or leave out what the plugin does not need";
                return Err(Unfit::new(what).hint(hint));
            }
        }
    }
    Ok(())
}

fn invalid(error: wasmparser::Error) -> Unfit {
    Unfit::new(format!("this is not a valid WebAssembly module: {error}"))
}

fn check_type(ty: &CompositeInnerType) -> Result<(), Unfit> {
    let CompositeInnerType::Func(ty) = ty else { return Ok(()) };
    let (parameters, results) = (ty.params().len(), ty.results().len());
    if parameters > MAX_PARAMETERS || results > MAX_RESULTS {
        let what = format!(
            "a function of it takes {parameters} values and returns {results}: \
             at most {MAX_PARAMETERS} and {MAX_RESULTS} are compiled"
        );
        return Err(Unfit::new(what));
    }
    Ok(())
}

/// What a function costs, unless that is too much.
fn check_function(
    function: FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    limits: &Limits,
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
    let mut seen = Seen { locals: validator.len_locals().into(), operands: 0, blocks: 1, instructions: 0 };
    while !reader.eof() {
        let at = reader.original_position();
        let operator = reader.peek_operator(&validator.visitor(at)).map_err(invalid)?;
        check_block_type(&operator, validator.resources())?;
        reader.visit_operator(&mut validator.visitor(at)).map_err(invalid)?.map_err(invalid)?;
        seen.add(&operator, validator.operand_stack_height());
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

const TOO_LARGE: &str = "raise `functionSize` in its arguments, or divide the function";

/// What has been seen of a function.
struct Seen {
    locals: u64,
    /// At most, at any moment.
    operands: u64,
    blocks: u64,
    instructions: u64,
}

impl Seen {
    fn add(&mut self, operator: &Operator<'_>, operands: u32) {
        self.instructions += 1;
        self.operands = self.operands.max(operands.into());
        self.blocks += blocks_of(operator);
    }

    fn cost(&self) -> u64 {
        (self.locals + self.operands).saturating_mul(self.blocks).saturating_add(self.instructions)
    }
}

/// The blocks that the compiler makes of an instruction, roughly.
fn blocks_of(operator: &Operator<'_>) -> u64 {
    match operator {
        // Where fuel and time are looked at.
        Operator::Loop { .. } => 4,
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
        // An entry of a table that is made when it is first used.
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
        && moves(ty) > MAX_RESULTS
    {
        let what = format!("a block of it moves {} values, and may move {MAX_RESULTS}", moves(ty));
        return Err(Unfit::new(what));
    }
    Ok(())
}

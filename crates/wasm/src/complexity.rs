//! What it would cost to compile a module, counted before the compiler sees it: nothing stops the compiler once it runs.
//!
//! The compiler's time and memory grow with what a function has to keep (locals and operands) times where it has to keep it
//! (blocks), so that a small file can take minutes and gigabytes. That is counted while the module is validated, which takes
//! one pass. A unit of cost is some 0.2 to 0.4 µs on a small virtual machine, by measurement of the worst that was found.

mod function;
mod sections;

use wasmparser::{FuncValidatorAllocations, Parser, ValidPayload, Validator, WasmFeatures};

use crate::{module::Unfit, settings::GuestLimits};

/// Refuses a module that would take too long to compile, and tells which limit it is.
pub(crate) fn check(bytes: &[u8], limits: &GuestLimits) -> Result<(), Unfit> {
    // Which features are on is the compiler's to check.
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut kept = FuncValidatorAllocations::default();
    let mut cost = 0u64;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        cost = cost.saturating_add(sections::check(&payload)?);
        if let ValidPayload::Func(function, body) = validator.payload(&payload).map_err(invalid)? {
            cost = cost.saturating_add(function::check(function, &body, limits, &mut kept)?);
        }
        if cost > limits.module_cost() {
            let what =
                "it is too much work to compile: blocks × (locals + operands) of all functions together";
            let hint = "raise `moduleSize` in its arguments, or leave out what the plugin does not need";
            return Err(Unfit::new(what).hint(hint));
        }
    }
    Ok(())
}

fn invalid(error: wasmparser::Error) -> Unfit {
    Unfit::new(format!("this is not a valid WebAssembly module: {error}"))
}

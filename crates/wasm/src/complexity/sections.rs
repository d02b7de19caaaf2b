//! What a module declares besides the code of its functions.

use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, Element, ElementItems, ElementKind, Payload, TableInit,
};

use super::{function::MAX_MOVED, invalid};
use crate::module::Unfit;

/// Of functions, elements of tables, globals and so on: the compiler takes some time for each, however small it is.
const MAX_ENTRIES: u64 = 20_000;
/// Of one entry.
const ENTRY_COST: u64 = 300;
/// Of a function: calls have to move them.
const MAX_PARAMETERS: usize = 128;
/// Of what works out where something begins, or what it is to begin with: it is compiled, too.
const MAX_EXPRESSION_BYTES: usize = 64;

/// What a section costs, unless that is too much.
pub(super) fn check(payload: &Payload<'_>) -> Result<u64, Unfit> {
    let count = match payload {
        Payload::TypeSection(section) => {
            for group in section.clone() {
                let group = group.map_err(invalid)?;
                group.types().try_for_each(|ty| check_type(&ty.composite_type.inner))?;
            }
            entries("types", section.count().into())
        }
        Payload::ImportSection(section) => entries("imports", section.count().into()),
        Payload::FunctionSection(section) => entries("functions", section.count().into()),
        Payload::TableSection(section) => {
            for table in section.clone() {
                if let TableInit::Expr(expression) = table.map_err(invalid)?.init {
                    check_expression(&expression)?;
                }
            }
            entries("tables", section.count().into())
        }
        Payload::GlobalSection(section) => {
            for global in section.clone() {
                check_expression(&global.map_err(invalid)?.init_expr)?;
            }
            entries("globals", section.count().into())
        }
        Payload::ExportSection(section) => entries("exports", section.count().into()),
        Payload::ElementSection(section) => {
            let mut elements = u64::from(section.count());
            for element in section.clone() {
                elements += check_element(&element.map_err(invalid)?)?;
            }
            entries("elements of tables", elements)
        }
        Payload::DataSection(section) => {
            for data in section.clone() {
                if let DataKind::Active { offset_expr, .. } = data.map_err(invalid)?.kind {
                    check_expression(&offset_expr)?;
                }
            }
            entries("pieces of data", section.count().into())
        }
        _ => Ok(0),
    };
    count.map(|count| count * ENTRY_COST)
}

fn entries(what: &str, count: u64) -> Result<u64, Unfit> {
    if count > MAX_ENTRIES {
        return Err(Unfit::new(format!("it has {count} {what}, and may have {MAX_ENTRIES}")));
    }
    Ok(count)
}

fn check_type(ty: &CompositeInnerType) -> Result<(), Unfit> {
    let CompositeInnerType::Func(ty) = ty else { return Ok(()) };
    let (parameters, results) = (ty.params().len(), ty.results().len());
    if parameters > MAX_PARAMETERS || results > MAX_MOVED {
        let what = format!(
            "a function of it takes {parameters} values and returns {results}: \
             at most {MAX_PARAMETERS} and {MAX_MOVED} are compiled"
        );
        return Err(Unfit::new(what));
    }
    Ok(())
}

fn check_expression(expression: &ConstExpr<'_>) -> Result<(), Unfit> {
    let bytes = expression.get_binary_reader().bytes_remaining();
    if bytes > MAX_EXPRESSION_BYTES {
        let what = format!(
            "a constant of it takes {bytes} bytes to work out: at most {MAX_EXPRESSION_BYTES} are compiled"
        );
        return Err(Unfit::new(what));
    }
    Ok(())
}

/// How many elements a segment has.
fn check_element(element: &Element<'_>) -> Result<u64, Unfit> {
    if let ElementKind::Active { offset_expr, .. } = &element.kind {
        check_expression(offset_expr)?;
    }
    match &element.items {
        ElementItems::Functions(functions) => Ok(functions.count().into()),
        ElementItems::Expressions(_, expressions) => {
            for expression in expressions.clone() {
                check_expression(&expression.map_err(invalid)?)?;
            }
            Ok(expressions.count().into())
        }
    }
}

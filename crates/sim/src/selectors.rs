//! Compares selectors of devices with what kube-scheduler makes of them: results, errors, costs and estimates.

use serde::Deserialize;
use serde_json::Value;
use supercargo_cel::{
    COST_LIMIT, DeviceFact, DeviceFacts, DeviceSelector, EvaluationError, EvaluationErrorKind,
    LONGEST_EXPRESSION_BYTES, SelectableDevice, SelectorDefectKind,
};
use supercargo_manifest::{Location, Problem, Problems, Source};

use crate::conformance::{CheckedCases, Comparison};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectorCase {
    expression: String,
    #[serde(default)]
    device: Value,
    result: String,
    kind: Option<String>,
    error: Option<String>,
    cost: Option<u64>,
    max_cost: Option<u64>,
    #[serde(default)]
    accepted: bool,
}

/// What an evaluation comes to: `true`, `false` or `error`, the kind of error and its text, and the cost.
type Found = (String, Option<String>, Option<String>, Option<u64>);

/// Checks a list of selectors and devices.
pub fn check_selectors(source: &Source) -> Result<CheckedCases, Problems> {
    let cases: Vec<SelectorCase> = serde_json::from_str(&source.text).map_err(|error| {
        Problem::error(format!("no list of selectors: {error}")).at(source, Location::START)
    })?;
    let mut checked = CheckedCases::default();
    for case in &cases {
        checked.case(&case.expression, |about| compare(case, about));
    }
    Ok(checked)
}

fn compare(case: &SelectorCase, about: &mut Comparison<'_>) {
    let (result, kind, error, cost) = evaluated(case);
    about.equal(None, "result", &case.result, &result);
    about.equal(None, "kind", &case.kind, &kind);
    about.equal(None, "error", &case.error, &error);
    // Where the order of a map decides, the data has no cost.
    if case.cost.is_some() {
        about.equal(None, "cost", &case.cost, &cost);
    }
    let estimated = DeviceSelector::estimated_cost(&case.expression).ok();
    let is_short = case.expression.len() <= LONGEST_EXPRESSION_BYTES;
    about.equal(None, "maxCost", &case.max_cost, &estimated);
    let accepted = is_short && estimated.is_some_and(|cost| cost <= COST_LIMIT);
    about.equal(None, "accepted", &case.accepted, &accepted);
}

fn evaluated(case: &SelectorCase) -> Found {
    let failed = |kind: &str, error: String| ("error".to_owned(), Some(kind.to_owned()), Some(error), None);
    let selector = match DeviceSelector::compile(&case.expression) {
        Ok(selector) => selector,
        Err(defect) => {
            let kind = match defect.kind {
                SelectorDefectKind::Invalid => "compile",
                SelectorDefectKind::NotACondition => "type",
            };
            return failed(kind, defect.message.to_string());
        }
    };
    let device = match device(&case.device) {
        Ok(device) => device,
        Err(error) => return failed(kind_of(&error), error.message.to_string()),
    };
    let evaluated = selector.evaluate(&device);
    match evaluated.result {
        Ok(selected) => (selected.to_string(), None, None, Some(evaluated.cost)),
        Err(error) => {
            let (result, kind, message, _) = failed(kind_of(&error), error.message.to_string());
            (result, kind, message, Some(evaluated.cost))
        }
    }
}

fn kind_of(error: &EvaluationError) -> &'static str {
    match error.kind {
        EvaluationErrorKind::Failed => "runtime",
        EvaluationErrorKind::NotABool => "result",
        EvaluationErrorKind::TooExpensive => "cost",
    }
}

fn device(described: &Value) -> Result<SelectableDevice, EvaluationError> {
    let allow = described["allowMultipleAllocations"].as_bool().unwrap_or(false);
    let mut facts = DeviceFacts::new(described["driver"].as_str().unwrap_or_default(), allow);
    for (name, value) in described["attributes"].as_object().into_iter().flatten() {
        facts.attribute(name, fact(value))?;
    }
    for (name, value) in described["capacity"].as_object().into_iter().flatten() {
        facts.capacity(name, value["value"].as_str().unwrap_or_default());
    }
    Ok(facts.build())
}

fn fact(value: &Value) -> DeviceFact<'_> {
    if let Some(value) = value["int"].as_i64() {
        return DeviceFact::Int(value);
    }
    if let Some(value) = value["bool"].as_bool() {
        return DeviceFact::Bool(value);
    }
    match (value["string"].as_str(), value["version"].as_str()) {
        (Some(text), _) => DeviceFact::Text(text),
        (None, Some(version)) => DeviceFact::Version(version),
        (None, None) => DeviceFact::Unsupported,
    }
}

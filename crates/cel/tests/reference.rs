//! Results, kinds of errors, their texts and costs, as kube-scheduler 1.36.4 has them.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use supercargo_cel::{
    COST_LIMIT, DeviceFact, DeviceFacts, DeviceSelector, EvaluationError, EvaluationErrorKind,
    LONGEST_EXPRESSION_BYTES, SelectableDevice, SelectorDefectKind,
};

fn rows() -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("../../../tests/conformance/cel.json.gz")[..])
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

fn device(described: &Value) -> Result<SelectableDevice, EvaluationError> {
    let allow = described["allowMultipleAllocations"].as_bool().unwrap_or(false);
    let mut facts = DeviceFacts::new(described["driver"].as_str().unwrap(), allow);
    for (name, value) in described["attributes"].as_object().into_iter().flatten() {
        let fact = match value.as_object().unwrap().iter().next() {
            Some((kind, value)) => match &**kind {
                "int" => DeviceFact::Int(value.as_i64().unwrap()),
                "bool" => DeviceFact::Bool(value.as_bool().unwrap()),
                "string" => DeviceFact::Text(value.as_str().unwrap()),
                "version" => DeviceFact::Version(value.as_str().unwrap()),
                other => panic!("{other}"),
            },
            None => DeviceFact::Unsupported,
        };
        facts.attribute(name, fact)?;
    }
    for (name, value) in described["capacity"].as_object().into_iter().flatten() {
        facts.capacity(name, value["value"].as_str().unwrap());
    }
    Ok(facts.build())
}

/// What we make of a row, in the row's terms.
fn ours(row: &Value) -> Value {
    let selector = match DeviceSelector::compile(row["expression"].as_str().unwrap()) {
        Ok(selector) => selector,
        Err(defect) => {
            let kind = match defect.kind {
                SelectorDefectKind::Invalid => "compile",
                SelectorDefectKind::NotACondition => "type",
            };
            return serde_json::json!({ "result": "error", "kind": kind, "error": defect.message });
        }
    };
    let failed = |error: EvaluationError| {
        let kind = match error.kind {
            EvaluationErrorKind::Failed => "runtime",
            EvaluationErrorKind::NotABool => "result",
            EvaluationErrorKind::TooExpensive => "cost",
        };
        serde_json::json!({ "result": "error", "kind": kind, "error": error.message })
    };
    let device = match device(&row["device"]) {
        Ok(device) => device,
        Err(error) => return failed(error),
    };
    let evaluated = selector.evaluate(&device);
    let mut found = match evaluated.result {
        Ok(selected) => serde_json::json!({ "result": selected.to_string() }),
        Err(error) => failed(error),
    };
    // Where the order of a map decides, the reference has no cost.
    if row.get("cost").is_some() {
        found["cost"] = evaluated.cost.into();
    }
    found
}

#[test]
fn the_api_server_s_estimate_is_the_same() {
    let mut different = Vec::new();
    for row in rows() {
        let expression = row["expression"].as_str().unwrap();
        let estimated = DeviceSelector::estimated_cost(expression).ok();
        let accepted =
            estimated.is_some_and(|cost| cost <= COST_LIMIT && expression.len() <= LONGEST_EXPRESSION_BYTES);
        let expected = (row["maxCost"].as_u64(), row["accepted"].as_bool().unwrap());
        if (estimated, accepted) != expected {
            different
                .push(format!("{expression}\n  expected {expected:?}\n  found {:?}", (estimated, accepted)));
        }
    }
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}

#[test]
fn every_row_gives_the_reference_s_result() {
    let rows = rows();
    assert!(rows.len() > 200, "{}", rows.len());
    let mut different = Vec::new();
    for row in &rows {
        let found = ours(row);
        for field in ["result", "kind", "error", "cost"] {
            if found.get(field) != row.get(field) {
                let expression = row["expression"].as_str().unwrap();
                let (expected, found) = (row.get(field), found.get(field));
                different.push(format!("{expression}\n  {field}: expected {expected:?}\n  found {found:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}

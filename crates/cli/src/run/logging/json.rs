//! Log lines as JSON with the names that kube-scheduler's have (`--logging-format=json`): `ts`, `caller`, `msg`, `v`, `err`;
//! and `level`, which says the same in a word.

use std::{
    error::Error,
    fmt::{self, Write as _},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use supercargo_live::scheduler::PODS_TARGET;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use super::{DECISIONS, PODS, SCORES};

/// Writes an event as a line of JSON.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write_line(writer, event, SystemTime::now())
    }
}

fn write_line(mut writer: Writer<'_>, event: &Event<'_>, now: SystemTime) -> fmt::Result {
    let (metadata, mut fields) = (event.metadata(), Fields::default());
    event.record(&mut fields);
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    write!(writer, "{{\"ts\":{}.{:03}", since.as_millis(), since.subsec_micros() % 1000)?;
    write!(writer, ",\"level\":\"{}\"", metadata.level().as_str().to_lowercase())?;
    if let (Some(file), Some(line)) = (metadata.file(), metadata.line()) {
        write!(writer, ",\"caller\":{}", Value::from(format!("{}:{line}", short(file))))?;
    }
    write!(writer, ",\"msg\":{}", Value::from(fields.message))?;
    if let Some(verbosity) = verbosity(metadata) {
        write!(writer, ",\"v\":{verbosity}")?;
    }
    writeln!(writer, "{}}}", fields.others)
}

/// The `--v` from which on such a line is written; errors have none.
fn verbosity(metadata: &Metadata<'_>) -> Option<u8> {
    match *metadata.level() {
        Level::ERROR => None,
        Level::DEBUG => Some(DECISIONS),
        Level::TRACE => Some(SCORES),
        _ if metadata.target() == PODS_TARGET => Some(PODS),
        _ => Some(0),
    }
}

/// A file with its folder, as kube-scheduler names it.
fn short(file: &str) -> &str {
    let folder = Path::new(file).parent().and_then(Path::parent).map_or(0, |above| above.as_os_str().len());
    file[folder..].trim_start_matches('/')
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    /// `,"name":value` for each of the others.
    others: String,
}

impl Fields {
    fn add(&mut self, field: &Field, value: &Value) {
        match field.name() {
            "message" => self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            // That is the name that kube-scheduler gives an error.
            "error" => self.add_named("err", value),
            name => self.add_named(name, value),
        }
    }

    fn add_named(&mut self, name: &str, value: &Value) {
        // A text takes all that is written.
        let _ = write!(self.others, ",{}:{value}", Value::from(name));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, &Value::from(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, &Value::from(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, &Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, &Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, &Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, &Value::from(value));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            io::Write::write(&mut *self.0.lock().unwrap(), bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are written, without the time and the place, which are checked here.
    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let writer = written.clone();
        let layer =
            tracing_subscriber::fmt::layer().event_format(JsonLines).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let parsed = text.lines().map(|line| {
            assert!(line.starts_with("{\"ts\":1"), "{line}");
            let mut line: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            // Milliseconds: a number of the year 2001 or later.
            assert!(line["ts"].as_f64().is_some_and(|ts| ts > 1e12), "{line}");
            assert!(line["caller"].as_str().is_some_and(|at| at.starts_with("logging/json.rs:")), "{line}");
            let fields = line.as_object_mut().unwrap();
            fields.remove("ts");
            fields.remove("caller");
            line
        });
        parsed.collect()
    }

    #[test]
    fn lines_have_kube_schedulers_names_and_plain_values() {
        let (some, none) = (Some("node-1"), None::<&str>);
        let error = io::Error::other("no \"way\"\nthere");
        let found = lines(|| {
            tracing::info!(node = some, other = none, count = 3, share = 0.5, leads = true, "said");
            tracing::info!(target: PODS_TARGET, pod = %"a/b", "bound");
            tracing::warn!(lease = "ns/name", "odd {}", 7);
            tracing::error!(%error, "failed");
            tracing::debug!(took = ?std::time::Duration::from_millis(1500), "decided");
            tracing::trace!("scores");
        });
        let expected = [
            json!({"level": "info", "msg": "said", "v": 0, "node": "node-1", "count": 3, "share": 0.5, "leads": true}),
            json!({"level": "info", "msg": "bound", "v": 2, "pod": "a/b"}),
            json!({"level": "warn", "msg": "odd 7", "v": 0, "lease": "ns/name"}),
            json!({"level": "error", "msg": "failed", "err": "no \"way\"\nthere"}),
            json!({"level": "debug", "msg": "decided", "v": 5, "took": "1.5s"}),
            json!({"level": "trace", "msg": "scores", "v": 10}),
        ];
        assert_eq!(found, expected);
    }
}

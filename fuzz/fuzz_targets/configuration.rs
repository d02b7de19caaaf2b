//! A text is a configuration or it is not; what is one makes plugins. The same for an operator's preferences.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use supercargo_config::load;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Source;
use supercargo_model::{Node, Timestamp};
use supercargo_plugins::{dynamic_scoring, registry};

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.yaml", text);
    prefer(&source);
    match load(&source, &REGISTRY) {
        Ok(loaded) => {
            let _ = loaded.warnings.to_string();
            if let Err(problems) = loaded.configuration.profiles(&REGISTRY) {
                panic!("it loaded, so its plugins can be made:\n{problems}");
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "a text that is refused is told why");
            let _ = problems.to_string();
        }
    }
});

fn prefer(source: &Source) {
    match dynamic_scoring::read(source) {
        Ok(preferences) => {
            preferences.raw_score(&Node::default(), Timestamp::UNIX_EPOCH);
        }
        Err(problems) => assert!(!problems.is_empty(), "a text that is refused is told why"),
    }
}

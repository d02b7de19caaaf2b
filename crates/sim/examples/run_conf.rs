fn main() {
    use supercargo_manifest::Source;
    let registry = supercargo_plugins::registry();
    let mut by = std::collections::BTreeMap::<String, (usize, usize)>::new();
    let mut shown = 0;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let source = Source::new(path.as_str(), text);
        let scenario = supercargo_sim::conformance::Scenario::read(&source, &registry).unwrap_or_else(|p| panic!("{p}"));
        let d = scenario.check(&registry).unwrap_or_else(|p| panic!("{p}"));
        let e = by.entry(scenario.theme.clone()).or_default();
        if d.is_empty() { e.0 += 1 } else {
            e.1 += 1;
            if shown < 30 { shown += 1; println!("{} {} differences, first: {:?}", scenario.name, d.len(), d[0]); }
        }
    }
    println!("{by:#?}");
}

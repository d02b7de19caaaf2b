fn main() {
    use supercargo_manifest::Source;
    use supercargo_sim::{setup, trace};
    let registry = supercargo_plugins::registry();
    let args: Vec<String> = std::env::args().collect();
    let read = |p: &str| Source::new(p, std::fs::read_to_string(p).unwrap());
    let t = trace::Trace::read(&read(&args[1])).unwrap_or_else(|p| panic!("{p}"));
    let e = trace::Expectation::read(&read(&args[2])).unwrap_or_else(|p| panic!("{p}"));
    let c = supercargo_config::default_configuration(&registry).unwrap();
    let mut engine = setup::engine(Default::default(), &c, &registry, setup::Overrides { all_nodes: true, ..Default::default() }).unwrap();
    let start = std::time::Instant::now();
    let checked = trace::check(&t, &e, &mut engine, || ());
    println!("{} passed, {} failed in {:?}; {:?}", checked.passed, checked.failed, start.elapsed(), &checked.differences.iter().take(5).collect::<Vec<_>>());
}

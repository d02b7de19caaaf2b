fn main() {
    use supercargo_sim::{bench::*, setup};
    let registry = supercargo_plugins::registry();
    let c = supercargo_config::default_configuration(&registry).unwrap();
    let n: usize = std::env::args().nth(1).map_or(5000, |a| a.parse().unwrap());
    let b: usize = std::env::args().nth(2).map_or(10000, |a| a.parse().unwrap());
    let p: usize = std::env::args().nth(3).map_or(20000, |a| a.parse().unwrap());
    let only = std::env::args().nth(4);
    for w in Workload::ALL {
        if only.as_deref().is_some_and(|o| o != w.name()) { continue }
        let size = Size { nodes: n, bound: b, pods: p };
        let o = setup::Overrides { all_nodes: true, ..Default::default() };
        let mut e = setup::engine(cluster(w, size), &c, &registry, o).unwrap();
        let m = run(w, size, &mut e, pending(w, size), true, |_| ());
        println!("{m:?}");
        let size2 = Size { pods: 40, ..size };
        let mut e = setup::engine(cluster(w, size2), &c, &registry, o).unwrap();
        let m2 = run(w, size2, &mut e, pending(w, size2), false, |_| ());
        println!("   slow {:.0}/s", m2.pods_per_second);
    }
}

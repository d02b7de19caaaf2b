//! What the process itself takes up, read from `/proc` when asked. Where there is no `/proc`, there are no such series.

use std::{collections::HashMap, fs};

use prometheus::{
    core::{Collector, Desc},
    proto::{Counter, Gauge, Metric, MetricFamily, MetricType},
};

/// The kernel tells times to processes in hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;
/// What is shown for a limit that is none.
const UNLIMITED: f64 = u64::MAX as f64;

const HELPS: [(&str, &str); 9] = [
    ("process_cpu_seconds_total", "Processor time that the process has used."),
    ("process_max_fds", "Files that the process may have open."),
    (
        "process_network_receive_bytes_total",
        "Bytes that came by network, to the process's network namespace.",
    ),
    (
        "process_network_transmit_bytes_total",
        "Bytes that went by network, from the process's network namespace.",
    ),
    ("process_open_fds", "Files that the process has open."),
    ("process_resident_memory_bytes", "Memory that the process holds."),
    ("process_start_time_seconds", "When the process began, in seconds since 1970."),
    ("process_virtual_memory_bytes", "Addresses that the process has mapped."),
    ("process_virtual_memory_max_bytes", "Addresses that the process may map."),
];

/// Reads `/proc` when asked.
#[derive(Clone)]
pub(super) struct Process {
    descs: Vec<Desc>,
}

impl Process {
    pub(super) fn new() -> Self {
        let desc = |(name, help): (&str, &str)| Desc::new(name.into(), help.into(), vec![], HashMap::new());
        Self { descs: HELPS.into_iter().map(desc).collect::<Result<_, _>>().expect("valid names") }
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let values = read();
        let value = |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        HELPS.iter().filter_map(|(name, help)| Some(family(name, help, value(name)?))).collect()
    }
}

fn family(name: &str, help: &str, value: f64) -> MetricFamily {
    let mut metric = Metric::default();
    let mut family = MetricFamily::default();
    if name.ends_with("_total") {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
        family.set_field_type(MetricType::COUNTER);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
        family.set_field_type(MetricType::GAUGE);
    }
    family.set_name(name.into());
    family.set_help(help.into());
    family.set_metric(vec![metric]);
    family
}

/// Whatever can be read; what cannot is left out.
fn read() -> Vec<(&'static str, f64)> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let stat = text("/proc/self/stat");
    let limits = text("/proc/self/limits");
    let netstat = text("/proc/self/net/netstat");
    let boot = field(&text("/proc/stat"), "btime");
    let cpu = stat_number(&stat, 14).zip(stat_number(&stat, 15));
    let values = [
        ("process_cpu_seconds_total", cpu.map(|(user, system)| (user + system) / TICKS_PER_SECOND)),
        (
            "process_start_time_seconds",
            boot.zip(stat_number(&stat, 22)).map(|(boot, t)| boot + t / TICKS_PER_SECOND),
        ),
        ("process_virtual_memory_bytes", stat_number(&stat, 23)),
        (
            "process_resident_memory_bytes",
            field(&text("/proc/self/status"), "VmRSS:").map(|kib| kib * 1024.0),
        ),
        ("process_open_fds", fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64)),
        ("process_max_fds", limit(&limits, "Max open files")),
        ("process_virtual_memory_max_bytes", limit(&limits, "Max address space")),
        ("process_network_receive_bytes_total", column(&netstat, "IpExt:", "InOctets")),
        ("process_network_transmit_bytes_total", column(&netstat, "IpExt:", "OutOctets")),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A field of `/proc/self/stat`, by its number in proc(5). The second is a name that may hold blanks and brackets.
fn stat_number(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

/// The number after a word that begins a line.
fn field(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The soft limit of that name.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

/// A number in a table of two lines, names above numbers, both with the table's name in front.
fn column(tables: &str, table: &str, name: &str) -> Option<f64> {
    let mut lines = tables.lines().filter(|line| line.starts_with(table));
    let place = lines.next()?.split_ascii_whitespace().position(|other| other == name)?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 30 0 0 20 0 4 0 999 4096";
        assert_eq!(stat_number(stat, 14), Some(250.0));
        assert_eq!(stat_number(stat, 15), Some(30.0));
        assert_eq!(stat_number(stat, 22), Some(999.0));
        assert_eq!(stat_number(stat, 23), Some(4096.0));
    }

    #[test]
    fn limits_may_be_none() {
        let limits = "Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert_eq!(limit(limits, "Max address space"), Some(UNLIMITED));
    }

    #[test]
    fn tables_are_read_by_column() {
        let tables = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets\nIpExt: 3 4\n";
        assert_eq!(column(tables, "IpExt:", "InOctets"), Some(4.0));
        assert_eq!(column(tables, "IpExt:", "OutOctets"), None);
    }
}

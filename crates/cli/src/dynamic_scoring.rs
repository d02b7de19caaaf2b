//! `supercargo dynamic-scoring …`, and where the other commands take DynamicScoring's preferences and the time from.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;
use supercargo_config::Configuration;
use supercargo_framework::{
    profile::Choice,
    registry::{Args, Point},
};
use supercargo_manifest::{Entry, Problem, Problems, Source, Value, nearest};
use supercargo_model::{
    Cluster, ConfigMap, Name, Timestamp,
    object::{Object, Objects},
};
use supercargo_plugins::dynamic_scoring::{self, NAME, Preference, Preferences, PreferencesReference};

use crate::{
    arguments::Format,
    failure::{Ending, Failure},
    input,
    objects::{read_objects, tell_skipped},
    output::{Console, Grid, listed},
};

/// How many nodes of an entry are listed in a table.
const MAX_LISTED_NODES: usize = 50;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Tell what is wrong with a text of DynamicScoring, and which nodes each of its entries selects now
    Check(Check),
}

#[derive(clap::Args)]
pub(crate) struct Check {
    /// The text, or a manifest of the ConfigMap that carries it; `-` for stdin
    file: PathBuf,

    /// Which of the ConfigMap's texts, if it carries several
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// The nodes: files or folders with what `kubectl get nodes -o yaml|json` prints
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    cluster: Vec<PathBuf>,

    /// The time that it is now, in place of the clock's
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,

    /// How the result is printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// What an offline command may be told about DynamicScoring.
#[derive(clap::Args)]
pub(crate) struct Preferred {
    /// What DynamicScoring prefers, in place of its ConfigMap among the objects
    #[arg(long, value_name = "FILE")]
    dynamic_scoring: Option<PathBuf>,

    /// The time that it is now, in place of the clock's
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

pub(crate) fn run(command: &Command, console: &mut Console) -> Result<Ending, Failure> {
    let Command::Check(options) = command;
    let source = carried(input::text(&options.file)?, options.key.as_deref())?;
    let preferences = dynamic_scoring::read(&source)?;
    console.warnings(preferences.warnings());
    if options.cluster.is_empty() {
        console.line(format!("{}: valid", source.name))?;
        console.note("give --cluster to see which nodes each entry selects");
        return Ok(Ending::Well);
    }
    let objects = read_objects(&options.cluster)?;
    tell_skipped(&objects, console);
    let mut cluster = Cluster::default();
    objects.objects.into_iter().for_each(|object| cluster.put(object));
    let now = options.now.unwrap_or_else(Timestamp::now);
    print(&preferences, &cluster, now, options.output, console)?;
    Ok(Ending::Well)
}

/// The text itself; out of a ConfigMap's manifest, the text that it carries.
fn carried(source: Source, key: Option<&str>) -> Result<Source, Problems> {
    let documents = supercargo_manifest::read(&source).unwrap_or_default();
    let is_map = |document: &&Value| document.get("kind").and_then(Value::as_str) == Some("ConfigMap");
    let Some(data) = documents.iter().find(is_map).and_then(|map| map.get("data")) else {
        return Ok(source);
    };
    let texts: Vec<&Entry> =
        data.entries().iter().filter(|entry| key.is_none_or(|key| *key == *entry.key)).collect();
    match *texts {
        [Entry { key, value, .. }] => {
            let text = value.as_str().unwrap_or_default();
            Ok(Source::new(format!("{}/{key}", source.name), text))
        }
        [] => {
            let there: Vec<&str> = data.entries().iter().map(|entry| &*entry.key).collect();
            let hint = if there.is_empty() {
                "it is empty".to_owned()
            } else {
                format!("it has {}", there.join(", "))
            };
            Err(Problem::error("the ConfigMap carries no such text").at(&source, data.at).hint(hint).into())
        }
        _ => {
            let keys: Vec<&str> = texts.iter().map(|entry| &*entry.key).collect();
            let hint = format!("choose one with --key: {}", keys.join(", "));
            Err(Problem::error("the ConfigMap carries several texts").at(&source, data.at).hint(hint).into())
        }
    }
}

/// An entry and the nodes that it selects.
#[derive(Serialize)]
struct Selected {
    line: u32,
    score: i32,
    nodes: Vec<String>,
}

impl Selected {
    fn new(entry: &Preference, cluster: &Cluster, now: Timestamp) -> Self {
        let selected = cluster.nodes().filter(|info| entry.selects(&info.node, now));
        let mut nodes: Vec<String> = selected.map(|info| info.name().to_string()).collect();
        nodes.sort_unstable();
        Self { line: entry.line, score: entry.score, nodes }
    }
}

fn print(
    preferences: &Preferences,
    cluster: &Cluster,
    now: Timestamp,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let entries = preferences.entries().iter().map(|entry| Selected::new(entry, cluster, now));
    match format {
        Format::Json => {
            for entry in entries {
                console.line(serde_json::to_string(&entry).map_err(std::io::Error::from)?)?;
            }
        }
        Format::Table => {
            let mut grid = Grid::new([">LINE", ">SCORE", ">NODES", "NAMES"]).fitting();
            for Selected { line, score, nodes } in entries {
                let names = if nodes.is_empty() { "-".to_owned() } else { listed(&nodes, MAX_LISTED_NODES) };
                grid.row([line.to_string(), score.to_string(), nodes.len().to_string(), names]);
            }
            console.grid(grid)?;
            console.line(format!("\n{} nodes, at {now}", cluster.node_count()))?;
        }
    }
    Ok(())
}

impl Preferred {
    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// Leaves the ConfigMaps that DynamicScoring reads among the objects, with the given text if there is one; what is
    /// worth a look in their texts, or what is wrong with them.
    pub(crate) fn put(
        &self,
        objects: &mut Objects,
        configuration: &Configuration,
    ) -> Result<Problems, Problems> {
        let places = preferences(configuration)?;
        let all: Vec<String> = config_maps(&objects.objects).map(|map| map.key().to_string()).collect();
        keep_only(&places, objects);
        if let Some(file) = &self.dynamic_scoring {
            if places.is_empty() {
                let hint = format!("enable {NAME} in the configuration's plugins.score");
                let what = format!("--dynamic-scoring is given, and no profile has {NAME} on");
                return Err(Problem::error(what).hint(hint).into());
            }
            let source = input::text(file)?;
            for place in places.keys() {
                let text = carried(source.clone(), Some(&place.key))?;
                dynamic_scoring::read(&text)?;
                replace(place, &text, objects);
            }
        }
        check(&places, objects, &all)
    }
}

/// The places that the plugin reads, each with the name of a scheduler that has it on.
fn preferences(configuration: &Configuration) -> Result<BTreeMap<PreferencesReference, Name>, Problems> {
    let mut places = BTreeMap::new();
    let is_on = |choices: &[Choice]| choices.iter().any(|choice| &*choice.plugin == NAME);
    for profile in configuration.profiles.iter().filter(|profile| is_on(profile.at(Point::Score))) {
        let given = profile.arguments.iter().find(|arguments| &*arguments.plugin == NAME);
        let place = PreferencesReference::of(&given.map_or_else(Args::none, |given| given.args()))?;
        places.entry(place).or_insert_with(|| profile.scheduler_name.clone());
    }
    Ok(places)
}

/// Any other ConfigMap is none of a scheduler's business.
fn keep_only(places: &BTreeMap<PreferencesReference, Name>, objects: &mut Objects) {
    let before = objects.objects.len();
    objects.objects.retain(|object| match object {
        Object::ConfigMap(map) => places.keys().any(|place| place.config_map == map.key()),
        _ => true,
    });
    let left_out = before - objects.objects.len();
    if left_out > 0 {
        *objects.skipped.entry("ConfigMap".to_owned()).or_default() += left_out;
    }
}

fn config_maps(objects: &[Object]) -> impl Iterator<Item = &ConfigMap> {
    objects.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => Some(map),
        _ => None,
    })
}

/// Puts a text in its place.
fn replace(place: &PreferencesReference, source: &Source, objects: &mut Objects) {
    let found = config_maps(&objects.objects).find(|map| map.key() == place.config_map).cloned();
    let others = found.iter().flat_map(|map| map.data.iter());
    let others = others.map(|(key, text)| (key.clone(), text.clone()));
    let data = others.chain([(place.key.clone(), source.text.clone())]).collect();
    let (namespace, name) = (place.config_map.namespace.clone(), place.config_map.name.clone());
    objects.objects.retain(|object| match object {
        Object::ConfigMap(map) => map.key() != place.config_map,
        _ => true,
    });
    objects.objects.push(Object::ConfigMap(ConfigMap { namespace, name, data }));
}

/// Reads every text. `all` are the ConfigMaps that were given, also those that nobody reads.
fn check(
    places: &BTreeMap<PreferencesReference, Name>,
    objects: &Objects,
    all: &[String],
) -> Result<Problems, Problems> {
    let mut problems = Problems::default();
    for (place, scheduler) in places {
        let map = config_maps(&objects.objects).find(|map| map.key() == place.config_map);
        match map.map(|map| (map, map.data.get(&place.key))) {
            Some((_, Some(text))) => match dynamic_scoring::read(&place.source(text)) {
                Ok(preferences) => problems.extend(preferences.warnings().clone()),
                Err(more) => problems.extend(more),
            },
            Some((map, None)) => {
                let keys = map.data.iter().map(|(key, _)| &**key);
                let what = format!("the ConfigMap {} has no key {}", place.config_map, place.key);
                problems.push(missing(scheduler, &what, &place.key, keys));
            }
            None => {
                let what = format!("there is no ConfigMap {} among the objects", place.config_map);
                let maps = all.iter().map(String::as_str);
                problems.push(missing(scheduler, &what, &place.config_map.to_string(), maps));
            }
        }
    }
    if problems.has_errors() { Err(problems) } else { Ok(problems) }
}

/// A text is not there; something with a name like its own may be meant.
fn missing<'n>(scheduler: &Name, what: &str, name: &str, others: impl Iterator<Item = &'n str>) -> Problem {
    let near = nearest(name, others).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| "give it among the objects, or with --dynamic-scoring FILE".to_owned());
    Problem::warning(format!("{NAME} of {scheduler} prefers no node: {what}")).hint(hint)
}

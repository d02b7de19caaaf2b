//! What is allowed, and probably not meant: each with the reason and what to do instead.

mod plugins;
mod weights;

use supercargo_manifest::Problems;

use crate::{
    configuration::ProfileConfiguration,
    document::{Document, ProfileFields},
    merge::Merged,
    place::Text,
    profile_plugins::ProfilePlugins,
    resolve::Resolved,
};

/// A profile in all its forms.
struct Seen<'a> {
    /// Its path, such as `profiles[0]`.
    at: String,
    fields: &'a ProfileFields,
    merged: &'a Merged,
    profile: &'a ProfileConfiguration,
    known: &'a ProfilePlugins<'a>,
    text: Text<'a>,
}

/// Warns of pitfalls.
pub(crate) fn warn(document: &Document, resolved: &Resolved<'_>, text: Text<'_>, problems: &mut Problems) {
    percentages(document, text, problems);
    extenders(document, text, problems);
    let profiles = document.profiles.iter().zip(&resolved.merged).zip(&resolved.configuration.profiles);
    for (index, ((fields, (merged, known)), profile)) in profiles.enumerate() {
        let seen = Seen { at: format!("profiles[{index}]"), fields, merged, profile, known, text };
        plugins::warn(&seen, problems);
        weights::warn(&seen, problems);
    }
}

fn percentages(document: &Document, text: Text<'_>, problems: &mut Problems) {
    let own = ("percentageOfNodesToScore".to_owned(), document.percentage_of_nodes_to_score);
    let profiles = document.profiles.iter().enumerate();
    let profiles = profiles.map(|(index, profile)| {
        (format!("profiles[{index}].percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
    });
    for (path, percentage) in std::iter::once(own).chain(profiles) {
        if let Some(percentage @ 1..10) = percentage {
            let message = format!(
                "with {percentage} % of the nodes, most nodes are never scored, and good ones are missed"
            );
            let hint =
                "scoring all nodes is fast here: write 100, or 0 to let the size of the cluster decide";
            problems.push(text.warning(path, message).hint(hint));
        }
    }
}

fn extenders(document: &Document, text: Text<'_>, problems: &mut Problems) {
    for (index, extender) in document.extenders.iter().enumerate() {
        let path = format!("extenders[{index}]");
        if extender.url_prefix.is_empty() {
            let message = "the extender has no address, so that every call to it fails";
            problems.push(
                text.warning(format!("{path}.urlPrefix"), message)
                    .hint("write where it is, such as http://127.0.0.1:8888/scheduler"),
            );
        }
        if extender.is_in_hot_path() && !extender.node_cache_capable {
            let message = "each call sends every node in full, which slows down every pod";
            let hint = "let the extender keep the nodes itself, and write nodeCacheCapable: true";
            problems.push(text.warning(format!("{path}.nodeCacheCapable"), message).hint(hint));
        }
    }
}

//! Which form of a page a caller accepts: text, or a version of an object as JSON or YAML.

/// What a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Text,
    Structured(Form, Version),
}

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Yaml,
}

/// The version of a page's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1Alpha1,
    V1Beta1,
}

impl Version {
    const ALL: [Self; 2] = [Self::V1Alpha1, Self::V1Beta1];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// The best of what is accepted. Whoever accepts anything gets text; an object has to be asked for by kind and version, as
/// in `application/json;as=Statusz;g=config.k8s.io;v=v1beta1`.
pub(super) fn negotiate(accept: &str, group: &str, kind: &str) -> Option<Wanted> {
    if accept.trim().is_empty() {
        return Some(Wanted::Text);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses.iter().filter(|clause| clause.quality > 0.0).find_map(|clause| clause.wanted(group, kind))
}

struct Clause<'a> {
    media: String,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(name, _)| *name == "q");
        let quality = quality.map_or(1.0, |(_, quality)| quality.parse().unwrap_or(0.0));
        Self { media, parameters, quality }
    }

    fn wanted(&self, group: &str, kind: &str) -> Option<Wanted> {
        let parameter =
            |name| self.parameters.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let form = match &*self.media {
            "text/plain" | "text/*" | "*/*" if parameter("as").is_none() => return Some(Wanted::Text),
            "application/json" | "application/*" | "*/*" => Form::Json,
            "application/yaml" => Form::Yaml,
            _ => return None,
        };
        let known = parameter("as") == Some(kind) && parameter("g") == Some(group);
        let version = Version::ALL.into_iter().find(|version| parameter("v") == Some(version.as_str()))?;
        known.then_some(Wanted::Structured(form, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_get_what_they_accept() {
        use Wanted::{Structured, Text};
        let object = |media: &str, version: &str| format!("{media};as=Flagz;g=config.k8s.io;v={version}");
        let cases = [
            (String::new(), Some(Text)),
            ("*/*".into(), Some(Text)),
            ("text/plain".into(), Some(Text)),
            ("application/json".into(), None),
            ("image/png".into(), None),
            (object("application/json", "v1beta1"), Some(Structured(Form::Json, Version::V1Beta1))),
            (object("application/yaml", "v1alpha1"), Some(Structured(Form::Yaml, Version::V1Alpha1))),
            (object("application/json", "v2"), None),
            ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1".into(), None),
            (
                format!("text/plain;q=0.5, {}", object("application/json", "v1beta1")),
                Some(Structured(Form::Json, Version::V1Beta1)),
            ),
            ("text/html,application/xml;q=0.9,*/*;q=0.8".into(), Some(Text)),
        ];
        for (accept, wanted) in cases {
            assert_eq!(negotiate(&accept, "config.k8s.io", "Flagz"), wanted, "{accept}");
        }
    }
}

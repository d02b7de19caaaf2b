//! URLs as Go reads them.

use crate::{
    budget::{Budget, Halt},
    go_text::quoted,
    value::{MapValue, Value},
};
use std::{collections::BTreeMap, fmt, sync::Arc};

type Answer = Result<Value, Halt>;

#[derive(Debug, Default)]
pub(crate) struct Url {
    scheme: String,
    opaque: String,
    user: Option<String>,
    host: String,
    /// As bytes: what was escaped need not be text.
    path: Vec<u8>,
    /// How the path was written, if it would be written otherwise.
    raw_path: String,
    query: Option<String>,
    fragment: Option<String>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Part {
    Path,
    Host,
    User,
    Query,
    Fragment,
}

/// Go requires what an HTTP request can have.
pub(crate) fn is_request_uri(text: &str) -> bool {
    Url::parse(text, true).is_ok()
}

impl Url {
    fn parse(text: &str, of_request: bool) -> Result<Self, String> {
        Self::parts(text, of_request).map_err(|why| format!("parse {}: {why}", quoted(text)))
    }

    fn parts(text: &str, of_request: bool) -> Result<Self, String> {
        let (text, fragment) = match text.split_once('#') {
            Some((text, fragment)) if !of_request => (text, Some(fragment)),
            _ => (text, None),
        };
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".into());
        }
        if text.is_empty() && of_request {
            return Err("empty url".into());
        }
        let mut url = Self { fragment: fragment.map(str::to_owned), ..Self::default() };
        if let Some(fragment) = fragment {
            unescape(fragment, Part::Fragment)?;
        }
        if text == "*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, rest) = scheme_of(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        url.query = query.map(str::to_owned);
        url.hierarchy(rest, of_request)?;
        Ok(url)
    }

    fn hierarchy(&mut self, rest: &str, of_request: bool) -> Result<(), String> {
        if !rest.starts_with('/') {
            if !self.scheme.is_empty() {
                self.opaque = rest.to_owned();
                return Ok(());
            }
            if of_request {
                return Err("invalid URI for request".into());
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        let has_authority = !self.scheme.is_empty() || !of_request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//") {
            Some(rest) if has_authority => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                self.authority(authority)?;
                path
            }
            _ => rest,
        };
        self.path = unescape(path, Part::Path)?;
        if escape(&self.path) != path {
            self.raw_path = path.to_owned();
        }
        Ok(())
    }

    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        self.host = host_of(host)?;
        if let Some(user) = user {
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(valid) {
                return Err("net/url: invalid userinfo".into());
            }
            unescape(user, Part::User)?;
            self.user = Some(user.to_owned());
        }
        Ok(())
    }

    fn escaped_path(&self) -> String {
        let raw_is_valid = || {
            let same = unescape(&self.raw_path, Part::Path).is_ok_and(|path| path == self.path);
            let allowed = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !must_escape(byte, Part::Path);
            same && self.raw_path.bytes().all(allowed)
        };
        if !self.raw_path.is_empty() && raw_is_valid() {
            return self.raw_path.clone();
        }
        if self.path == b"*" { "*".into() } else { escape(&self.path) }
    }

    /// The host without its port, and the port.
    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_optional_port(&self.host[colon..]) => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (&*self.host, ""),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }
}

fn scheme_of(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn is_optional_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn host_of(host: &str) -> Result<String, String> {
    let wrong_port = |port: &str| format!("invalid port {} after host", quoted(port));
    if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        let port = &host[end + 1..];
        if !is_optional_port(port) {
            return Err(wrong_port(port));
        }
        let address = host[1..end].split("%25").next().unwrap_or_default();
        if address.parse::<core::net::Ipv6Addr>().is_err() {
            return Err("invalid host".into());
        }
    } else if let Some(colon) = host.rfind(':')
        && (!is_optional_port(&host[colon..]) || host[..colon].contains(':'))
    {
        return Err(wrong_port(&host[colon..]));
    }
    let host = unescape(host, Part::Host)?;
    Ok(String::from_utf8_lossy(&host).into_owned())
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    match part {
        Part::Host => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => !b"$&+,/:;=@".contains(&byte),
        _ => true,
    }
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut written = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'%' {
            let shown = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]).into_owned();
            let escape = || format!("invalid URL escape {}", quoted(&shown));
            let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
            let hex = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let value = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(escape)?;
            if part == Part::Host && value < 0x80 && value != b'%' {
                return Err(escape());
            }
            written.push(value);
            at += 3;
            continue;
        }
        if part == Part::Host && byte < 0x80 && must_escape(byte, Part::Host) {
            return Err(format!("invalid character {} in host name", quoted(&(byte as char).to_string())));
        }
        written.push(if byte == b'+' && part == Part::Query { b' ' } else { byte });
        at += 1;
    }
    Ok(written)
}

fn escape(path: &[u8]) -> String {
    let mut written = String::new();
    for byte in path {
        if must_escape(*byte, Part::Path) {
            written.push_str(&format!("%{byte:02X}"));
        } else {
            written.push(*byte as char);
        }
    }
    written
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(out, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                out.write_str("//")?;
                if let Some(user) = &self.user {
                    write!(out, "{user}@")?;
                }
                out.write_str(&self.host)?;
            }
            out.write_str(&self.escaped_path())?;
        } else {
            out.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(out, "?{query}")?;
        }
        match &self.fragment {
            Some(fragment) => write!(out, "#{fragment}"),
            None => Ok(()),
        }
    }
}

pub(crate) fn to_url(args: &[Value], _: &mut Budget) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    let parsed = Url::parse(text, true).and_then(|_| Url::parse(text, false));
    Ok(match parsed {
        Ok(url) => Value::Url(Arc::new(url)),
        Err(why) => Value::error(format!("URL parse error during conversion from string: {why}")),
    })
}

pub(crate) fn is_url(args: &[Value], _: &mut Budget) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    Ok(Value::Bool(is_request_uri(text)))
}

fn of_url(args: &[Value], read: fn(&Url) -> Value) -> Answer {
    Ok(match &args[0] {
        Value::Url(url) => read(url),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn scheme(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| Value::text(&url.scheme))
}

pub(crate) fn host(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| Value::text(&url.host))
}

pub(crate) fn hostname(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| Value::text(url.host_and_port().0))
}

pub(crate) fn port(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| Value::text(url.host_and_port().1))
}

pub(crate) fn escaped_path(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| Value::text(&url.escaped_path()))
}

pub(crate) fn query(args: &[Value], _: &mut Budget) -> Answer {
    of_url(args, |url| {
        let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for pair in url.query.iter().flat_map(|query| query.split('&')) {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else {
                continue;
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            values.entry(text(&key)).or_default().push(Value::text(&text(&value)));
        }
        let mut map = MapValue::default();
        for (key, values) in values {
            map.insert(Value::text(&key), Value::list(values));
        }
        Value::Map(Arc::new(map))
    })
}

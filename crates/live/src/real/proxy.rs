//! HTTP proxies on the way to the API server: which one, and for which servers none.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use supercargo_manifest::Base64;

use super::access::Environment;

/// A proxy that is asked to connect us through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) address: Uri,
    /// Who we are to it.
    pub(super) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Reads an address such as `http://user:password@10.0.0.1:3128`; the scheme may be left out.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        if scheme != "http" {
            return Err(format!("a proxy by {scheme} is not supported"));
        }
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let address = format!("http://{host}").parse::<Uri>().ok().filter(|uri| uri.host().is_some());
        let address = address.ok_or("this is no address of a proxy")?;
        let authorization = user.map(basic).transpose()?;
        Ok(Self { address, authorization })
    }

    /// The proxy that the environment names for a server.
    pub(super) fn of_environment(server: &Uri, environment: Environment<'_>) -> Result<Option<Self>, String> {
        let names = match server.scheme_str() {
            Some("https") => ["HTTPS_PROXY", "https_proxy"],
            _ => ["HTTP_PROXY", "http_proxy"],
        };
        let either = |names: [&'static str; 2]| {
            let mut given =
                names.into_iter().filter_map(|name| Some((name, environment(name)?.into_string().ok()?)));
            given.find(|(_, value)| !value.is_empty())
        };
        let Some((name, address)) = either(names) else { return Ok(None) };
        let exempt = either(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
        if is_exempt(server, &exempt) {
            return Ok(None);
        }
        Self::parse(&address).map(Some).map_err(|why| format!("{name}: {why}"))
    }
}

fn basic(user: &str) -> Result<HeaderValue, String> {
    let plain: Vec<u8> = percent_decode_str(user).collect();
    let header = format!("Basic {}", Base64::of(&plain).as_str());
    let mut value = HeaderValue::try_from(header).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a server is reached without a proxy, by the rules of Go's clients.
fn is_exempt(server: &Uri, list: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("https") { 443 } else { 80 });
    let ip = host.parse::<IpAddr>().ok();
    // Nobody means a proxy for what is on the same machine.
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    let rules = list.split(',').map(|rule| rule.trim().to_lowercase());
    rules.filter(|rule| !rule.is_empty()).any(|rule| rule == "*" || is_named(&rule, &host, ip, port))
}

/// A rule is an address, a range of addresses, or a domain; addresses and domains may have a port.
fn is_named(rule: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    if let Some((network, bits)) = rule.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse(), bits.parse())
    {
        return ip.is_some_and(|ip| is_within(ip, network, bits));
    }
    let rule = match rule.rsplit_once(':') {
        Some((rest, wanted)) if rule.parse::<IpAddr>().is_err() => {
            if wanted.parse() != Ok(port) {
                return false;
            }
            rest
        }
        _ => rule,
    };
    if let Ok(address) = rule.trim_matches(['[', ']']).parse::<IpAddr>() {
        return ip == Some(address);
    }
    match rule.trim_start_matches('*').strip_prefix('.') {
        Some(domain) => host.strip_suffix(domain).is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
        None => host.strip_suffix(rule).is_some_and(|sub| sub.is_empty() || sub.ends_with('.')),
    }
}

fn is_within(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    let same = |ip: u128, network: u128, width: u32| {
        let shift = width.saturating_sub(bits);
        ip.checked_shr(shift).unwrap_or_default() == network.checked_shr(shift).unwrap_or_default()
    };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => same(ip.to_bits().into(), network.to_bits().into(), 32),
        (IpAddr::V6(ip), IpAddr::V6(network)) => same(ip.to_bits(), network.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_address() {
        for (text, address, authorization) in [
            ("http://10.0.0.1:3128", Some("http://10.0.0.1:3128/"), None),
            ("proxy:3128", Some("http://proxy:3128/"), None),
            // base64 of "me:a@b"
            ("http://me:a%40b@proxy:3128", Some("http://proxy:3128/"), Some("Basic bWU6YUBi")),
            ("https://proxy", None, None),
            ("socks5://proxy", None, None),
            ("http://", None, None),
            ("a b", None, None),
        ] {
            let proxy = Proxy::parse(text).ok();
            assert_eq!(proxy.as_ref().map(|proxy| proxy.address.to_string()).as_deref(), address, "{text}");
            let shown = proxy.and_then(|proxy| proxy.authorization);
            assert_eq!(shown.as_ref().and_then(|value| value.to_str().ok()), authorization, "{text}");
        }
    }

    #[test]
    fn the_environment_names_proxies_and_exemptions() {
        let chosen = |server: &str, variables: &[(&str, &str)]| {
            let environment = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            let proxy = Proxy::of_environment(&server.parse().unwrap(), &environment).unwrap();
            proxy.map(|proxy| proxy.address.to_string())
        };
        let both = [("HTTPS_PROXY", "http://s"), ("HTTP_PROXY", "http://p")];
        assert_eq!(chosen("https://a", &both).as_deref(), Some("http://s/"));
        assert_eq!(chosen("http://a", &both).as_deref(), Some("http://p/"));
        assert_eq!(
            chosen("https://a", &[("HTTPS_PROXY", ""), ("https_proxy", "low")]).as_deref(),
            Some("http://low/")
        );
        assert_eq!(chosen("https://a", &[("HTTP_PROXY", "http://p")]), None);
        for local in ["https://localhost:1", "https://127.0.0.2", "https://[::1]:6443"] {
            assert_eq!(chosen(local, &both), None, "{local}");
        }
        for (exempt, server, is_exempt) in [
            ("*", "https://a", true),
            ("b, a", "https://a", true),
            ("example.com", "https://example.com", true),
            ("example.com", "https://api.example.com", true),
            ("example.com", "https://badexample.com", false),
            (".example.com", "https://example.com", false),
            ("*.example.com", "https://API.example.com", true),
            ("a:6443", "https://a:6443", true),
            ("a:6443", "https://a", false),
            ("a:443", "https://a", true),
            ("10.0.0.1", "https://10.0.0.1:6443", true),
            ("10.0.0.1:443", "https://10.0.0.1:6443", false),
            ("10.0.0.0/8", "https://10.9.8.7", true),
            ("10.0.0.0/8", "https://11.0.0.1", false),
            ("0.0.0.0/0", "https://11.0.0.1", true),
            ("fd00::/8", "https://[fd12::1]:6443", true),
            ("fd00::/8", "https://[fe12::1]:6443", false),
            ("fd12::1", "https://[fd12::1]:6443", true),
            ("10.0.0.0/8", "https://ten", false),
        ] {
            let proxy = chosen(server, &[("HTTPS_PROXY", "http://s"), ("NO_PROXY", exempt)]);
            assert_eq!(proxy.is_none(), is_exempt, "{exempt} {server}");
        }
        let broken = Proxy::of_environment(&"https://a".parse().unwrap(), &|_| Some("socks5://x".into()));
        assert_eq!(broken, Err("HTTPS_PROXY: a proxy by socks5 is not supported".to_owned()));
    }
}

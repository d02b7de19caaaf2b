//! IP addresses and networks.

use crate::{
    budget::{Budget, Halt},
    go_text::quoted,
    value::Value,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Answer = Result<Value, Halt>;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Cidr {
    address: IpAddr,
    pub(crate) bits: u8,
}

macro_rules! text {
    ($value:expr) => {
        match $value.as_text() {
            Some(text) => text,
            None => return Ok(Value::no_such_overload()),
        }
    };
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    let failed =
        |why: &str| format!("IP Address {} parse error during conversion from string: {why}", quoted(text));
    let address = parse_any(text).map_err(|why| failed(&why))?;
    match address {
        Address::Zoned => Err(format!("IP address {} with zone value is not allowed", quoted(text))),
        Address::Plain(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text)))
        }
        Address::Plain(address) => Ok(address),
    }
}

enum Address {
    Plain(IpAddr),
    /// With the name of an interface behind it.
    Zoned,
}

fn parse_any(text: &str) -> Result<Address, String> {
    let failed = |why: &str| format!("ParseAddr({}): {why}", quoted(text));
    match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => {
            parse_v4(text).map(|address| Address::Plain(IpAddr::V4(address))).map_err(|why| failed(&why))
        }
        Some(b':') => {
            let (address, zone) =
                text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
            if zone.is_some_and(str::is_empty) {
                return Err(failed("zone must be a non-empty string"));
            }
            let address: Ipv6Addr = address.parse().map_err(|_| failed("unable to parse IP"))?;
            Ok(if zone.is_some() { Address::Zoned } else { Address::Plain(IpAddr::V6(address)) })
        }
        Some(_) => Err(failed("missing IPv6 address")),
        None => Err(failed("unable to parse IP")),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let mut octets = [0u8; 4];
    let mut place = 0;
    let mut digits = 0;
    let mut value = 0u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".into());
                }
                value = value * 10 + letter as u32 - '0' as u32;
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".into());
                }
            }
            '.' => {
                if digits == 0 || at + 1 == text.len() {
                    return Err(format!(
                        "IPv4 field must have at least one digit (at {})",
                        quoted(&text[at..])
                    ));
                }
                if place == 3 {
                    return Err("IPv4 address too long".into());
                }
                octets[place] = value as u8;
                place += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(format!("unexpected character (at {})", quoted(&text[at..]))),
        }
    }
    if place < 3 {
        return Err("IPv4 address too short".into());
    }
    octets[3] = value as u8;
    Ok(octets.into())
}

fn parse_network(text: &str) -> Result<Cidr, String> {
    let failed = |why: String| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {why}",
            quoted(text)
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'".into()))?;
    let address = match parse_any(address).map_err(failed)? {
        Address::Plain(address) => address,
        Address::Zoned => return Err(failed("IPv6 zones cannot be present in a prefix".into())),
    };
    let bad_bits = || failed(format!("bad bits after slash: {}", quoted(bits)));
    if bits.len() > 1 && !bits.starts_with(|letter: char| ('1'..='9').contains(&letter)) {
        return Err(bad_bits());
    }
    let parsed: i64 = bits.parse().map_err(|_| bad_bits())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if !(0..=most).contains(&parsed) {
        return Err(failed("prefix length out of range".into()));
    }
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text)));
    }
    Ok(Cidr { address, bits: parsed as u8 })
}

impl Cidr {
    fn masked_value(address: IpAddr, bits: u8) -> u128 {
        let (value, length) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let hidden = u32::from(length - bits);
        value.checked_shr(hidden).unwrap_or(0).checked_shl(hidden).unwrap_or(0)
    }

    fn masked(self) -> Self {
        let value = Self::masked_value(self.address, self.bits);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4((value as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(value.into()),
        };
        Self { address, ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self::masked_value(self.address, self.bits) == Self::masked_value(address, self.bits)
    }
}

pub(crate) fn to_ip(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match parse_address(text!(args[0])) {
        Ok(address) => Value::Ip(address),
        Err(message) => Value::error(message),
    })
}

pub(crate) fn is_ip(args: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::Bool(parse_address(text!(args[0])).is_ok()))
}

pub(crate) fn is_canonical(args: &[Value], _: &mut Budget) -> Answer {
    let text = text!(args[0]);
    Ok(match parse_address(text) {
        Ok(address) => Value::Bool(address.to_string() == text),
        Err(message) => Value::error(message),
    })
}

fn of_ip(args: &[Value], read: fn(IpAddr) -> Value) -> Answer {
    Ok(match &args[0] {
        Value::Ip(address) => read(*address),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn ip_to_text(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| Value::text(&address.to_string()))
}

pub(crate) fn family(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
}

pub(crate) fn is_unspecified(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| Value::Bool(address.is_unspecified()))
}

pub(crate) fn is_loopback(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| Value::Bool(address.is_loopback()))
}

pub(crate) fn is_link_local_multicast(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| {
        Value::Bool(match address {
            IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        })
    })
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_link_local_unicast(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| Value::Bool(link_local(address)))
}

/// Private addresses are global here, as in Go.
pub(crate) fn is_global_unicast(args: &[Value], _: &mut Budget) -> Answer {
    of_ip(args, |address| {
        let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        Value::Bool(!(broadcast || special || link_local(address)))
    })
}

pub(crate) fn to_cidr(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match parse_network(text!(args[0])) {
        Ok(network) => Value::Cidr(network),
        Err(why) => Value::error(format!("network address parse error during conversion from string: {why}")),
    })
}

pub(crate) fn is_cidr(args: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::Bool(parse_network(text!(args[0])).is_ok()))
}

fn of_cidr(args: &[Value], read: fn(Cidr) -> Value) -> Answer {
    Ok(match &args[0] {
        Value::Cidr(network) => read(*network),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn cidr_to_text(args: &[Value], _: &mut Budget) -> Answer {
    of_cidr(args, |network| Value::text(&format!("{}/{}", network.address, network.bits)))
}

pub(crate) fn address(args: &[Value], _: &mut Budget) -> Answer {
    of_cidr(args, |network| Value::Ip(network.address))
}

pub(crate) fn prefix_length(args: &[Value], _: &mut Budget) -> Answer {
    of_cidr(args, |network| Value::Int(i64::from(network.bits)))
}

pub(crate) fn masked(args: &[Value], _: &mut Budget) -> Answer {
    of_cidr(args, |network| Value::Cidr(network.masked()))
}

pub(crate) fn contains_ip(args: &[Value], budget: &mut Budget) -> Answer {
    let Value::Cidr(network) = &args[0] else { return Ok(Value::no_such_overload()) };
    let address = match &args[1] {
        Value::Ip(_) => args[1].clone(),
        _ => to_ip(&args[1..], budget)?,
    };
    Ok(match address {
        Value::Ip(address) => Value::Bool(network.contains(address)),
        // The reference forgets what was wrong with the address.
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn contains_cidr(args: &[Value], budget: &mut Budget) -> Answer {
    let Value::Cidr(network) = &args[0] else { return Ok(Value::no_such_overload()) };
    let other = match &args[1] {
        Value::Cidr(_) => args[1].clone(),
        _ => to_cidr(&args[1..], budget)?,
    };
    Ok(match other {
        Value::Cidr(other) => Value::Bool(network.bits <= other.bits && network.contains(other.address)),
        error @ Value::Error(_) => error,
        _ => Value::no_such_overload(),
    })
}

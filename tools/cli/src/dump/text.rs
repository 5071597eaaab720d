//! Text for service contexts, targets, exceptions, references.

use std::time::Duration;

use spandrel::{
    SystemException,
    cdr::GiopVersion,
    net::error::escape,
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Wire};
use spandrel_giop::{
    CONTEXT_BI_DIR_IIOP, CONTEXT_CODE_SETS, CONTEXT_EXCEPTION_DETAIL, ListenPoint, ServiceContextRef, ServiceContexts,
    Target, component::code_set_name, context_name, ids, read_exception_detail,
};

/// The number of octets shown without --hex.
const SHOWN: usize = 48;

/// Each context by its name, and its contents.
pub(super) fn contexts(contexts: &ServiceContexts<'_>) -> Vec<(String, String)> {
    contexts.iter().map(|context| (name(context.id), contents(&context))).collect()
}

fn name(id: u32) -> String {
    context_name(id).map_or_else(|| format!("{id:#010x}"), str::to_owned)
}

fn contents(context: &ServiceContextRef<'_>) -> String {
    let data = context.data;
    let read = match context.id {
        CONTEXT_CODE_SETS => code_sets(data),
        CONTEXT_BI_DIR_IIOP => ListenPoint::from_context(data).map(|points| {
            points.iter().map(|point| format!("{}:{}", escape(&point.host), point.port)).collect::<Vec<_>>().join(", ")
        }),
        CONTEXT_EXCEPTION_DETAIL => read_exception_detail(data).map(|text| format!("\"{}\"", escape(&text))),
        ids::CONTEXT_REMAINING_TIME => remaining(data),
        ids::CONTEXT_OPERATION_INDEX => match data {
            [_, _, _, _] => encapsulation(data).and_then(|mut input| Ok(input.u16()?.to_string())),
            _ => Ok(octets(data)),
        },
        ids::CONTEXT_TRACE => encapsulation(data).and_then(|mut input| {
            let (parent, state) = (input.str()?, input.str()?);
            let (parent, state) = (escape(&parent), state.as_ref());
            Ok(if state.is_empty() { parent.to_string() } else { format!("\"{parent}\", \"{}\"", escape(state)) })
        }),
        _ => Ok(octets(data)),
    };
    read.unwrap_or_else(|error| format!("{} ({error})", octets(data)))
}

fn encapsulation(data: &[u8]) -> Result<Decoder<'_>, CdrError> {
    Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_2))
}

fn code_sets(data: &[u8]) -> Result<String, CdrError> {
    let mut input = encapsulation(data)?;
    let (chars, wide) = (input.u32()?, input.u32()?);
    let name = |number| code_set_name(number).map_or_else(|| format!("{number:#010x}"), str::to_owned);
    Ok(format!("char {}, wchar {}", name(chars), if wide == 0 { "none".to_owned() } else { name(wide) }))
}

fn remaining(data: &[u8]) -> Result<String, CdrError> {
    let mut input = encapsulation(data)?;
    let mut limit = || {
        let span = input.u64()?;
        let time = Duration::from_micros(span / 10);
        Ok::<_, CdrError>(if span == u64::MAX { "no limit".to_owned() } else { format!("{time:?}") })
    };
    Ok(format!("answer {}, delivery {}", limit()?, limit()?))
}

/// The target of a request.
pub(super) fn target(target: &Target<'_>) -> String {
    let whole = match target {
        Target::Key(_) => "",
        Target::Profile(_) => " (by its profile)",
        Target::Reference { .. } => " (by its whole reference)",
    };
    target.object_key().map_or_else(|| target.to_string(), |key| format!("{}{whole}", self::key(&key)))
}

/// An object key: decoded if it is one of ours, otherwise as octets.
pub(super) fn key(key: &[u8]) -> String {
    spandrel::poa::describe_key(key).unwrap_or_else(|| octets(key))
}

/// Octets as text where they are printable, otherwise in hexadecimal digits; abbreviated if there are many.
pub(super) fn octets(octets: &[u8]) -> String {
    let shown = &octets[..octets.len().min(SHOWN)];
    let more = if shown.len() < octets.len() { format!("… ({} octets)", octets.len()) } else { String::new() };
    if shown.is_empty() {
        return "nothing".to_owned();
    }
    if shown.iter().all(|octet| (0x20..0x7f).contains(octet)) {
        return format!("{:?}{more}", String::from_utf8_lossy(shown));
    }
    let digits: String = shown.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{digits}{more}")
}

/// A system exception in a reply's body.
pub(super) fn system_exception(body: &mut Decoder<'_>) -> Result<SystemException, CdrError> {
    let id = body.str()?;
    SystemException::decode(&id, body)
}

/// A reference in a reply's body, by its type, its addresses and its key.
pub(super) fn reference(body: &mut Decoder<'_>) -> Result<String, CdrError> {
    let ior = Ior::decode(body)?;
    let places = ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let places: Vec<String> = places
        .map(|profile| format!("{}:{} {}", escape(&profile.host), profile.port, key(&profile.object_key)))
        .collect();
    let places = if places.is_empty() { "no IIOP profile".to_owned() } else { places.join("; ") };
    Ok(format!("\"{}\" at {places}", escape(&ior.type_id)))
}

/// Lines of sixteen octets each, in the format of `hexdump -C`.
pub(super) fn hexdump(octets: &[u8]) -> Vec<String> {
    let line = |(at, line): (usize, &[u8])| {
        let digits: Vec<String> = line.iter().map(|octet| format!("{octet:02x}")).collect();
        let text: String =
            line.iter().map(|octet| if octet.is_ascii_graphic() { char::from(*octet) } else { '.' }).collect();
        format!("{:06x}  {:<47}  {text}", at * 16, digits.join(" "))
    };
    octets.chunks(16).enumerate().map(line).collect()
}

//! Values of properties and policies as text and JSON.

use anyhow::{Context as _, anyhow};
use spandrel::Orb;
use spandrel::dynamic::{DynAny, TextContext};
use spandrel::net::error::{escape, excerpt};
use spandrel::services::cos_trading::FollowOption;
use spandrel::services::cos_trading::{Policy, Property, trader_name_any};
use spandrel::types::{Any, TypeCode};

use crate::common;
use crate::json::JsonObject;

/// The two parts of `NAME=VALUE`.
pub(super) fn split(text: &str) -> anyhow::Result<(&str, &str)> {
    let parts = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) =
        parts.ok_or_else(|| common::usage(format!("expected NAME=VALUE instead of `{}`", excerpt(text))))?;
    Ok((name.trim(), value))
}

/// The value of a text that has its type before it, such as `short 3`, or of a text of the given type.
fn read(orb: &Orb, type_code: Option<&TypeCode>, text: &str) -> anyhow::Result<Any> {
    let resolve = |url: &str| {
        let object = orb.string_to_object(url);
        object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
    };
    let context = TextContext::new().references(&resolve);
    match type_code {
        Some(type_code) => Ok(DynAny::from_text_with(type_code, text, &context)?.to_any()?),
        None => Ok(DynAny::from_text_with(&TypeCode::ANY, text, &context)?.any()?.clone()),
    }
}

/// The value of a text with its type before it.
pub(crate) fn read_value(orb: &Orb, text: &str) -> anyhow::Result<Any> {
    read(orb, None, text)
}

/// A property of `NAME=VALUE`. The type is that in the service type, or stands before the value.
pub(super) fn property(orb: &Orb, text: &str, types: &[(String, TypeCode)]) -> anyhow::Result<Property> {
    let (name, value) = split(text)?;
    let type_code = types.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, type_code)| type_code);
    let value = read(orb, type_code, value).map_err(|error| match type_code {
        Some(_) => error,
        None => {
            let names = types.iter().map(|(name, _)| &**name);
            let similar = common::did_you_mean(name, names);
            error.context(format!("the service type has no property `{}`{similar}", escape(name)))
        }
    });
    let value = value.with_context(|| format!("invalid value for the property `{}`", escape(name)))?;
    Ok(Property { name: name.to_owned(), value })
}

/// The standard policies of queries with their types.
const POLICIES: [(&str, TypeOfPolicy); 10] = [
    ("exact_type_match", TypeOfPolicy::Boolean),
    ("hop_count", TypeOfPolicy::Number),
    ("link_follow_rule", TypeOfPolicy::Follow),
    ("match_card", TypeOfPolicy::Number),
    ("return_card", TypeOfPolicy::Number),
    ("search_card", TypeOfPolicy::Number),
    ("starting_trader", TypeOfPolicy::Trader),
    ("use_dynamic_properties", TypeOfPolicy::Boolean),
    ("use_modifiable_properties", TypeOfPolicy::Boolean),
    ("use_proxy_offers", TypeOfPolicy::Boolean),
];

#[derive(Clone, Copy)]
enum TypeOfPolicy {
    Boolean,
    Number,
    Follow,
    /// Names of links, with slashes between them.
    Trader,
}

/// A policy of `NAME=VALUE`. Policies that are not in the standard have their type before the value.
pub(super) fn policy(orb: &Orb, text: &str) -> anyhow::Result<Policy> {
    use spandrel::types::Typed as _;
    let (name, value) = split(text)?;
    let known = POLICIES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let value = match known {
        Some(TypeOfPolicy::Boolean) => read(orb, Some(&TypeCode::BOOLEAN), value),
        Some(TypeOfPolicy::Number) => read(orb, Some(&TypeCode::ULONG), value),
        Some(TypeOfPolicy::Follow) => read(orb, Some(&FollowOption::type_code()), value),
        Some(TypeOfPolicy::Trader) => {
            let names: Vec<String> = value.split('/').map(str::to_owned).collect();
            Ok(trader_name_any(&names)?)
        }
        None => match &*common::did_you_mean(name, POLICIES.iter().map(|(name, _)| *name)) {
            "" => read(orb, None, value),
            similar => Err(anyhow!("it is no standard policy{similar}")),
        },
    };
    let value = value.map_err(|error| common::as_usage(error.context(format!("invalid policy `{}`", escape(name)))))?;
    Ok(Policy { name: name.to_owned(), value })
}

/// A value for people.
pub(crate) fn text(value: &Any) -> String {
    DynAny::new(value).map_or_else(|error| format!("(undecodable: {error})"), |value| value.to_string())
}

/// Properties as an object of JSON. A value without a JSON form is null.
pub(super) fn json(properties: &[Property]) -> String {
    let object = properties.iter().fold(JsonObject::new(), |object, property| {
        let value = DynAny::new(&property.value).ok().and_then(|value| value.to_json().ok());
        object.json(&property.name, value.as_deref().unwrap_or("null"))
    });
    object.finish()
}

/// The name of a follow option, as in IDL.
pub(super) fn follow_text(option: FollowOption) -> &'static str {
    match option {
        FollowOption::LocalOnly => "local_only",
        FollowOption::IfNoLocal => "if_no_local",
        FollowOption::Always => "always",
    }
}

/// The error of a number or name in place of a follow option.
pub(super) fn follow(text: &str) -> Result<FollowOption, String> {
    let options = [FollowOption::LocalOnly, FollowOption::IfNoLocal, FollowOption::Always];
    let option = options.into_iter().find(|option| follow_text(*option) == text);
    option.ok_or_else(|| anyhow!("expected local_only, if_no_local or always").to_string())
}

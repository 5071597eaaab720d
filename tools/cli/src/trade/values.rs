//! Values of properties and policies as text and JSON.

use anyhow::anyhow;
use spandrel::Orb;
use spandrel::dynamic::DynAny;
use spandrel::net::error::escape;
use spandrel::services::cos_trading::FollowOption;
use spandrel::services::cos_trading::{Policy, Property, trader_name_any};
use spandrel::services::offer_text::{PropertyTextError, property_from_text, split_property, value_from_text};
use spandrel::types::{Any, TypeCode};

use crate::common;
use crate::json::JsonObject;

fn read(orb: &Orb, type_code: Option<&TypeCode>, text: &str) -> anyhow::Result<Any> {
    Ok(value_from_text(orb, type_code, text)?)
}

/// The value of a text with its type before it.
pub(crate) fn read_value(orb: &Orb, text: &str) -> anyhow::Result<Any> {
    read(orb, None, text)
}

/// A property of `NAME=VALUE`. The type is that in the service type, or stands before the value.
pub(super) fn property(orb: &Orb, text: &str, types: &[(String, TypeCode)]) -> anyhow::Result<Property> {
    property_from_text(orb, text, types).map_err(|error| match error {
        PropertyTextError::Form(_) => common::as_usage(error.into()),
        PropertyTextError::Undeclared { name, source } => {
            let similar = common::did_you_mean(&name, types.iter().map(|(name, _)| &**name));
            let name = escape(&name);
            let error = anyhow!(source).context(format!("the service type has no property `{name}`{similar}"));
            error.context(format!("invalid value for the property `{name}`"))
        }
        error => error.into(),
    })
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
    let (name, value) = split_property(text).map_err(|error| common::as_usage(error.into()))?;
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

//! Values of a script, and their form in JSON (the page `JSON form of IDL values` of the book).

use anyhow::{anyhow, bail};
use rhai::{Array, Dynamic, Map};
use serde_json::Value;

/// The results of a call: its result alone, or a map with its `inout` and `out` parameters. The result is `result`
/// there, or `_result` if a parameter has that name.
pub(super) fn of_outcome(json: &Value) -> anyhow::Result<Dynamic> {
    let outs = json["out"].as_object().ok_or_else(|| anyhow!("the outcome of the call has another form"))?;
    let result = json.get("result").map(of_json);
    if outs.is_empty() {
        return Ok(result.unwrap_or(Dynamic::UNIT));
    }
    let mut map: Map = outs.iter().map(|(name, value)| (name.as_str().into(), of_json(value))).collect();
    if let Some(result) = result {
        let name = if map.contains_key("result") { "_result" } else { "result" }; // no name of IDL begins with `_`
        map.insert(name.into(), result);
    }
    Ok(map.into())
}

/// A value of JSON.
pub(super) fn of_json(json: &Value) -> Dynamic {
    match json {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.clone().into(),
        Value::Array(values) => values.iter().map(of_json).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.as_str().into(), of_json(value))).collect::<Map>().into()
        }
    }
}

/// The JSON of a value; `reference` is the text of a handle.
pub(super) fn to_json(value: &Dynamic, reference: &dyn Fn(&Dynamic) -> Option<String>) -> anyhow::Result<Value> {
    let to_json = |value: &Dynamic| to_json(value, reference);
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(value) = value.as_bool() {
        return Ok(value.into());
    }
    if let Ok(value) = value.as_int() {
        return Ok(value.into());
    }
    if let Ok(value) = value.as_float() {
        // JSON has no infinities; IDL's form of them is a string.
        let text = || {
            if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }
        };
        return Ok(serde_json::Number::from_f64(value).map_or_else(|| text().into(), Value::Number));
    }
    if let Ok(value) = value.as_char() {
        return Ok(value.to_string().into());
    }
    if let Some(text) = value.read_lock::<rhai::ImmutableString>() {
        return Ok(text.as_str().into());
    }
    if let Some(values) = value.read_lock::<Array>() {
        return values.iter().map(to_json).collect::<anyhow::Result<Vec<Value>>>().map(Value::Array);
    }
    if let Some(map) = value.read_lock::<Map>() {
        let members = map.iter().map(|(name, value)| Ok((name.to_string(), to_json(value)?)));
        return members.collect::<anyhow::Result<serde_json::Map<_, _>>>().map(Value::Object);
    }
    if let Some(reference) = reference(value) {
        return Ok(reference.into());
    }
    bail!("a value of the type {} is no argument of an operation", value.type_name())
}

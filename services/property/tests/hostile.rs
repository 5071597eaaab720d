//! Requests at random: beside a simple model of a set, and with arguments whose octets were changed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fastrand::Rng;
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, to_octets};
use spandrel::services::cos_property_service::{
    MultipleExceptionsError, Property, PropertyDef, PropertyMode, PropertyModeType, PropertySetDef,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

use PropertyModeType::{FixedNormal, FixedReadonly, Normal, ReadOnly, Undefined};

use crate::support::{Served, def, failures, long, property, text};

/// The minor code of a servant that panicked.
const PANICKED: u32 = 0x5350_5024;

const NAMES: [&str; 6] = ["", "a", "b", "c", "ß", "a b"];
const MODES: [PropertyModeType; 5] = [Normal, ReadOnly, FixedNormal, FixedReadonly, Undefined];

fn name(random: &mut Rng) -> String {
    NAMES[random.usize(..NAMES.len())].to_owned()
}

fn mode(random: &mut Rng) -> PropertyModeType {
    MODES[random.usize(..MODES.len())]
}

/// A number most of the time, so that properties conflict at times.
fn value(random: &mut Rng) -> Any {
    if random.u8(..) < 40 { text(["", "x"][random.usize(..2)]) } else { long(random.i32(..3)) }
}

/// The name of the exception of an operation.
fn raised<T, E: Debug>(outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{error:?}").split('(').next().unwrap_or_default().to_owned())
}

/// A set as a table, by the sentences of the specification.
#[derive(Default)]
struct Model(BTreeMap<String, (Any, PropertyModeType)>);

type Outcome = Result<(), &'static str>;

impl Model {
    fn define(&mut self, name: &str, value: &Any, mode: Option<PropertyModeType>) -> Outcome {
        match self.0.get_mut(name) {
            _ if name.is_empty() => Err("InvalidPropertyName"),
            _ if mode == Some(Undefined) => Err("UnsupportedMode"),
            None => {
                self.0.insert(name.to_owned(), (value.clone(), mode.unwrap_or(Normal)));
                Ok(())
            }
            Some((before, _)) if before.type_code() != value.type_code() => Err("ConflictingProperty"),
            Some((_, ReadOnly | FixedReadonly)) => Err("ReadOnlyProperty"),
            Some((_, before)) if !may_become(*before, mode.unwrap_or(*before)) => Err("UnsupportedMode"),
            Some((before, before_mode)) => {
                *before = value.clone();
                *before_mode = mode.unwrap_or(*before_mode);
                Ok(())
            }
        }
    }

    fn set_mode(&mut self, name: &str, mode: PropertyModeType) -> Outcome {
        match self.0.get_mut(name) {
            _ if name.is_empty() => Err("InvalidPropertyName"),
            _ if mode == Undefined => Err("UnsupportedMode"),
            None => Err("PropertyNotFound"),
            Some((_, before)) if !may_become(*before, mode) => Err("UnsupportedMode"),
            Some((_, before)) => {
                *before = mode;
                Ok(())
            }
        }
    }

    fn delete(&mut self, name: &str) -> Outcome {
        match self.0.get(name) {
            _ if name.is_empty() => Err("InvalidPropertyName"),
            None => Err("PropertyNotFound"),
            Some((_, FixedNormal | FixedReadonly)) => Err("FixedProperty"),
            Some(_) => {
                self.0.remove(name);
                Ok(())
            }
        }
    }
}

fn may_become(before: PropertyModeType, after: PropertyModeType) -> bool {
    before == after || before == Normal || after == FixedReadonly
}

/// The failures of several properties, as those of one after the other.
fn several<'i, I: 'i>(items: &'i [I], mut each: impl FnMut(&'i I) -> (&'i str, Outcome)) -> Vec<(String, String)> {
    let failed = items.iter().filter_map(|item| {
        let (name, outcome) = each(item);
        outcome.err().map(|reason| (name.to_owned(), reason.to_owned()))
    });
    failed.collect()
}

fn reasons(outcome: Result<(), MultipleExceptionsError>) -> Vec<(String, String)> {
    failures(outcome).into_iter().map(|(name, reason)| (name, format!("{reason:?}"))).collect()
}

#[test]
fn operations_at_random_have_the_outcome_of_a_table() {
    let served = Served::transient();
    let (mut set, mut model, mut replaced) = (served.set_def(), Model::default(), 0);
    let mut random = Rng::with_seed(20);
    for step in 0..3_000 {
        let count = random.usize(..4);
        let (one, changed, now) = (name(&mut random), value(&mut random), mode(&mut random));
        let owned = |outcome: Outcome| outcome.map_err(str::to_owned);
        match random.u8(..10) {
            0..3 => assert_eq!(
                raised(set.define_property(&one, &changed)),
                owned(model.define(&one, &changed, None)),
                "step {step}: {one}"
            ),
            3 => assert_eq!(
                raised(set.define_property_with_mode(&one, &changed, now)),
                owned(model.define(&one, &changed, Some(now))),
                "step {step}: {one} {now:?}"
            ),
            4 => assert_eq!(raised(set.set_property_mode(&one, now)), owned(model.set_mode(&one, now)), "step {step}"),
            5 => assert_eq!(raised(set.delete_property(&one)), owned(model.delete(&one)), "step {step}: {one}"),
            6 => {
                let defs: Vec<PropertyDef> =
                    (0..count).map(|_| def(&name(&mut random), value(&mut random), mode(&mut random))).collect();
                let define =
                    |def: &PropertyDef| model.define(&def.property_name, &def.property_value, Some(def.property_mode));
                let mut define = define;
                let expected = several(&defs, |def| (&*def.property_name, define(def)));
                assert_eq!(reasons(set.define_properties_with_modes(&defs)), expected, "step {step}");
            }
            7 => {
                let properties: Vec<Property> =
                    (0..count).map(|_| property(&name(&mut random), value(&mut random))).collect();
                let expected = several(&properties, |it| {
                    (&*it.property_name, model.define(&it.property_name, &it.property_value, None))
                });
                assert_eq!(reasons(set.define_properties(&properties)), expected, "step {step}");
            }
            8 => {
                let modes: Vec<PropertyMode> = (0..count)
                    .map(|_| PropertyMode { property_name: name(&mut random), property_mode: mode(&mut random) })
                    .collect();
                let expected =
                    several(&modes, |it| (&*it.property_name, model.set_mode(&it.property_name, it.property_mode)));
                assert_eq!(reasons(set.set_property_modes(&modes)), expected, "step {step}");
            }
            _ if random.u8(..) < 40 => {
                model.0.retain(|_, (_, mode)| matches!(mode, FixedNormal | FixedReadonly));
                assert_eq!(set.delete_all_properties().unwrap(), model.0.is_empty(), "step {step}");
            }
            _ => {
                let names: Vec<String> = (0..count).map(|_| name(&mut random)).collect();
                let expected = several(&names, |name| (name, model.delete(name)));
                assert_eq!(reasons(set.delete_properties(&names)), expected, "step {step}");
            }
        }
        let (all, rest) = set.get_all_properties(10).unwrap();
        assert!(rest.is_none());
        let all: Vec<_> = all.into_iter().map(|it| (it.property_name, it.property_value)).collect();
        let expected: Vec<_> = model.0.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect();
        assert_eq!(all, expected, "step {step}");
        let (is_complete, modes) = set.get_property_modes(&NAMES.map(str::to_owned)).unwrap();
        assert!(!is_complete, "the empty name has no mode");
        for listed in modes {
            let expected = model.0.get(&listed.property_name).map_or(Undefined, |(_, mode)| *mode);
            assert_eq!(listed.property_mode, expected, "step {step}: {}", listed.property_name);
        }
        // Fixed properties remain for ever: when all are fixed, a new set takes the place of this one.
        if model.0.values().filter(|(_, mode)| matches!(mode, FixedNormal | FixedReadonly)).count() == NAMES.len() - 1 {
            (set, model) = (served.set_def(), Model::default());
            replaced += 1;
        }
    }
    assert!(replaced > 3, "{replaced} sets");
}

/// The requests that are changed: operations with their arguments.
fn requests(set: &PropertySetDef) -> Vec<(&'static str, Vec<u8>)> {
    let form = OctetForm::bare(if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little })
        .code_sets(CharSet::Utf8, WcharSet::Utf16);
    let name = "name".to_owned();
    let (names, value) = (vec![name.clone(), "other".to_owned()], text("value"));
    let nested = Any::new(vec![Any::new(Some(set.clone())).unwrap(), value.clone()]).unwrap();
    let properties = vec![property("name", value.clone()), property("nested", nested)];
    let defs = vec![def("name", value.clone(), Normal)];
    let modes = vec![PropertyMode { property_name: name.clone(), property_mode: ReadOnly }];
    let types = vec![TypeCode::LONG, TypeCode::alias("IDL:Text:1.0", "Text", &TypeCode::STRING).unwrap()];
    vec![
        ("define_property", to_octets(&(name.clone(), value.clone()), &form)),
        ("define_properties", to_octets(&properties, &form)),
        ("get_all_property_names", to_octets(&7_u32, &form)),
        ("get_property_value", to_octets(&name, &form)),
        ("get_properties", to_octets(&names, &form)),
        ("get_all_properties", to_octets(&0_u32, &form)),
        ("delete_property", to_octets(&name, &form)),
        ("delete_properties", to_octets(&names, &form)),
        ("is_property_defined", to_octets(&name, &form)),
        ("define_property_with_mode", to_octets(&(name.clone(), value, Normal), &form)),
        ("define_properties_with_modes", to_octets(&defs, &form)),
        ("set_property_mode", to_octets(&(name, ReadOnly), &form)),
        ("set_property_modes", to_octets(&modes, &form)),
        ("create_constrained_propertyset", to_octets(&(types.clone(), properties.clone()), &form)),
        ("create_constrained_propertysetdef", to_octets(&(types, defs.clone()), &form)),
        ("create_initial_propertyset", to_octets(&properties, &form)),
        ("create_initial_propertysetdef", to_octets(&defs, &form)),
        ("next_n", to_octets(&7_u32, &form)),
    ]
    .into_iter()
    .map(|(operation, octets)| (operation, octets.unwrap()))
    .collect()
}

/// Changes some octets, or the length.
fn change(octets: &mut Vec<u8>, random: &mut Rng) {
    match random.u8(..4) {
        0 => octets.truncate(random.usize(..=octets.len())),
        1 => octets.extend((0..random.usize(..40)).map(|_| random.u8(..))),
        _ => {
            for _ in 0..random.usize(1..5) {
                let at = random.usize(..octets.len().max(1));
                if let Some(octet) = octets.get_mut(at) {
                    *octet = [random.u8(..), 0, 1, 0x7f, 0xff][random.usize(..5)];
                }
            }
        }
    }
}

#[test]
fn changed_arguments_are_answered_or_refused_and_the_service_goes_on() {
    let served = Served::transient();
    let set = served.set_def();
    let objects = [ObjectRef::from(set.clone()), served.factory.clone().into(), served.def_factory.clone().into()];
    let requests = requests(&set);
    let mut random = Rng::with_seed(20);
    let (mut answers, mut refused) = (0, 0);
    for _ in 0..6_000 {
        let (operation, octets) = &requests[random.usize(..requests.len())];
        let object = &objects[if operation.starts_with("create") { random.usize(1..3) } else { random.usize(..9) / 8 }];
        let mut octets = octets.clone();
        change(&mut octets, &mut random);
        let outcome: Result<(), SystemException> = object.invoke(
            operation,
            |out| {
                out.octets(&octets);
                Ok(())
            },
            |_| Ok(()),
        );
        use SystemExceptionKind::{BadOperation, BadParam, BadTypecode, DataConversion, ImpLimit, Marshal, Unknown};
        match outcome {
            Ok(()) => answers += 1,
            // Exceptions of the specification are unknown to this call.
            Err(error) if error.kind() == Unknown && error.minor() != PANICKED => answers += 1,
            Err(error) => {
                let is_expected =
                    matches!(error.kind(), BadOperation | BadParam | BadTypecode | DataConversion | ImpLimit | Marshal);
                assert!(is_expected, "{operation}: {error}: {octets:?}");
                refused += 1;
            }
        }
    }
    assert!(answers > 500 && refused > 500, "{answers} {refused}");
    let fresh = served.set();
    fresh.define_property("a", &long(1)).unwrap();
    assert_eq!(fresh.get_property_value("a").unwrap(), long(1));
}

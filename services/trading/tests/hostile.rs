//! Requests with arguments at random, and with arguments whose octets were changed: each has an answer or an exception, and
//! the trader goes on.

use fastrand::Rng;
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, to_octets};
use spandrel::services::cos_trading::lookup::{HowManyProps, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::register::ExportError;
use spandrel::services::cos_trading::{FollowOption, Policy, Property};
use spandrel::services::cos_trading_repos::service_type_repository::{
    ListOption, PropStruct, PropertyMode, SpecifiedServiceTypes,
};
use spandrel::types::values::Encode;
use spandrel::types::{Any, Interface as _, TypeCode};
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

use crate::support::{Served, all, long, names, property, text as text_value};

/// The minor code of a servant that panicked.
const PANICKED: u32 = 0x5350_5024;

/// Parts of constraints, preferences, names and recipes, of which texts at random are made.
const PARTS: [&str; 36] = [
    "Printer",
    "name",
    "ppm",
    "queue",
    "min ",
    "max ",
    "with ",
    "random",
    "first",
    " and ",
    " or ",
    "not ",
    "exist ",
    " == ",
    " != ",
    " < ",
    " >= ",
    " ~ ",
    " in ",
    "(",
    ")",
    "'",
    "\\",
    "$",
    "+",
    "-",
    "*",
    "/",
    "0",
    "1e308",
    "99999999999999999999",
    "TRUE",
    "\u{fc}",
    "\u{0}",
    "::",
    "IDL:",
];

fn text(random: &mut Rng) -> String {
    if random.u8(..) < 40 {
        return ["", "Printer", "queue", "min queue", "ppm > 1"][random.usize(..5)].to_owned();
    }
    let nested = if random.u8(..) == 0 { 5_000 } else { random.usize(..12) };
    let part = random.usize(..PARTS.len());
    let is_repeated = random.bool();
    (0..nested)
        .map(|_| if is_repeated { PARTS[part] } else { PARTS[random.usize(..PARTS.len())] })
        .filter(|part| !part.contains('\0'))
        .collect()
}

fn value(random: &mut Rng) -> Any {
    match random.u8(..9) {
        0 => Any::new(random.u32(..)),
        1 => Any::new(random.i32(..)),
        2 => Any::new(random.bool()),
        3 => Any::new(text(random)),
        4 => Any::new([FollowOption::LocalOnly, FollowOption::IfNoLocal, FollowOption::Always][random.usize(..3)]),
        5 => Any::new((0..random.usize(..300)).map(|_| random.u8(..)).collect::<Vec<u8>>()),
        6 => Any::new(vec![text(random); random.usize(..3)]),
        7 => Any::new(f64::from_bits(random.u64(..))),
        _ => Any::new(Any::default()),
    }
    .unwrap()
}

fn policies(random: &mut Rng) -> Vec<Policy> {
    const NAMES: [&str; 11] = [
        "search_card",
        "match_card",
        "return_card",
        "hop_count",
        "link_follow_rule",
        "exact_type_match",
        "starting_trader",
        "request_id",
        "use_dynamic_properties",
        "use_proxy_offers",
        "other",
    ];
    let name = |random: &mut Rng| if random.u8(..) < 30 { text(random) } else { NAMES[random.usize(..11)].to_owned() };
    (0..random.usize(..4)).map(|_| Policy { name: name(random), value: value(random) }).collect()
}

#[test]
fn requests_at_random_have_answers_or_exceptions_of_the_specification() {
    let served = Served::printers();
    // Queries return to the trader over its link.
    let link = served.lookup.link_if().unwrap().unwrap();
    link.add_link("self", Some(&served.lookup), FollowOption::Always, FollowOption::Always).unwrap();
    let mut random = Rng::with_seed(20);
    let (mut answers, mut exceptions) = (0, 0);
    for number in 0..1_500 {
        let desired = match random.u8(..9) {
            0 => SpecifiedProps::PropNames(vec![text(&mut random); random.usize(..3)]),
            _ => SpecifiedProps::Unlisted(HowManyProps::All),
        };
        let service_type = if random.u8(..) < 200 { "Printer".to_owned() } else { text(&mut random) };
        // Most queries have one fault or none.
        let constraint = if random.u8(..) < 180 { "ppm > 1".to_owned() } else { text(&mut random) };
        let preference = if random.u8(..) < 180 { "min queue".to_owned() } else { text(&mut random) };
        let texts = [constraint, preference];
        let policies = if random.bool() { Vec::new() } else { policies(&mut random) };
        match served.lookup.query(&service_type, &texts[0], &texts[1], &policies, &desired, random.u32(..)) {
            Ok(_) => answers += 1,
            Err(QueryError::System(exception)) => panic!("{number}: {exception}: {texts:?} {policies:?}"),
            Err(_) => exceptions += 1,
        }
        let name = |random: &mut Rng| ["name", "ppm", "queue", "x"][random.usize(..4)].to_owned();
        let mut properties: Vec<Property> =
            (0..random.usize(..3)).map(|_| Property { name: name(&mut random), value: value(&mut random) }).collect();
        for (name, value) in [("name", Any::new(text(&mut random))), ("ppm", Any::new(random.i32(..)))] {
            if properties.iter().all(|property| property.name != name) {
                properties.push(Property { name: name.to_owned(), value: value.unwrap() });
            }
        }
        match served.register.export(Some(&served.object("x")), &service_type, &properties) {
            Ok(_) => answers += 1,
            Err(ExportError::System(exception)) => panic!("{number}: {exception}: {properties:?}"),
            Err(_) => exceptions += 1,
        }
        _ = served.register.withdraw(&text(&mut random)).expect_err("no id is such a text");
        _ = link.remove_link(&text(&mut random)).expect_err("no link has such a name");
    }
    assert!(answers > 100 && exceptions > 100, "{answers} {exceptions}");
    let none = SpecifiedProps::Unlisted(HowManyProps::None);
    served.lookup.query("Printer", "ppm > 1", "min queue", &[], &none, 10).unwrap();
}

/// The requests that are changed: objects with operations and their arguments.
fn requests(served: &Served) -> Vec<(ObjectRef, &'static str, Vec<u8>)> {
    let form = OctetForm::bare(if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little })
        .code_sets(CharSet::Utf8, WcharSet::Utf16);
    let [t, id, empty] = ["Printer", "00000000-1", ""].map(str::to_owned);
    let object = Some(served.object("x"));
    let lookup = Some(served.lookup.clone());
    let properties = vec![property("name", text_value("n")), property("ppm", long(7))];
    let policies = vec![Policy { name: "hop_count".to_owned(), value: Any::new(1_u32).unwrap() }];
    let props =
        vec![PropStruct { name: "p".to_owned(), value_type: TypeCode::STRING, mode: PropertyMode::PropMandatory }];
    let always = FollowOption::Always;
    let query =
        (t.clone(), "ppm > 1 and name != 'x'".to_owned(), "min ppm".to_owned(), policies.clone(), all(), 10_u32);
    let types = SpecifiedServiceTypes::Unlisted(ListOption::All);
    let recipe = "($*) and ppm == $(ppm)".to_owned();
    let admin = ObjectRef::from(served.admin.clone());
    let register = ObjectRef::from(served.register.clone());
    let repository = ObjectRef::from(served.types.clone());
    let [links, proxies]: [ObjectRef; 2] =
        [served.lookup.link_if().unwrap().unwrap().into(), served.lookup.proxy_if().unwrap().unwrap().into()];
    let arguments: Vec<(&ObjectRef, &'static str, Box<dyn Encode>)> = vec![
        (served.lookup.as_object(), "query", Box::new(query)),
        (&register, "export", Box::new((object, t.clone(), properties.clone()))),
        (&register, "withdraw", Box::new(id.clone())),
        (&register, "describe", Box::new(id.clone())),
        (&register, "modify", Box::new((id.clone(), names(&["queue"]), properties.clone()))),
        (&register, "withdraw_using_constraint", Box::new((t.clone(), "ppm == 12345".to_owned()))),
        (&register, "resolve", Box::new(names(&["self", "other"]))),
        (&admin, "set_max_list", Box::new(7_u32)),
        (&admin, "set_request_id_stem", Box::new(vec![1_u8, 2])),
        (&admin, "set_def_follow_policy", Box::new(always)),
        (&admin, "list_offers", Box::new(3_u32)),
        (&links, "add_link", Box::new(("link".to_owned(), lookup.clone(), FollowOption::LocalOnly, always))),
        (&links, "describe_link", Box::new("link".to_owned())),
        (&links, "modify_link", Box::new(("link".to_owned(), FollowOption::LocalOnly, always))),
        (&links, "remove_link", Box::new("link".to_owned())),
        (&proxies, "export_proxy", Box::new((lookup, t.clone(), properties, false, recipe, policies))),
        (&proxies, "withdraw_proxy", Box::new(id.clone())),
        (&proxies, "describe_proxy", Box::new(id)),
        (&repository, "add_type", Box::new(("T".to_owned(), empty, props, names(&["Printer"])))),
        (&repository, "remove_type", Box::new("T".to_owned())),
        (&repository, "list_types", Box::new(types)),
        (&repository, "fully_describe_type", Box::new(t.clone())),
        (&repository, "mask_type", Box::new("T".to_owned())),
        (&repository, "unmask_type", Box::new("T".to_owned())),
    ];
    let encoded = |(object, operation, arguments): (&ObjectRef, _, Box<dyn Encode>)| {
        (object.clone(), operation, to_octets(&*arguments, &form).unwrap())
    };
    arguments.into_iter().map(encoded).collect()
}

/// Changes some octets, or the length.
fn change(octets: &mut Vec<u8>, random: &mut Rng) {
    match random.u8(..5) {
        0 => octets.truncate(random.usize(..=octets.len())),
        1 => octets.extend((0..random.usize(..40)).map(|_| random.u8(..))),
        2 => {}
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
fn changed_arguments_are_answered_or_refused_and_the_trader_goes_on() {
    use SystemExceptionKind::{BadParam, BadTypecode, DataConversion, ImpLimit, InvObjref, Marshal, Unknown};

    let served = Served::printers();
    served.printer("laser", 30, true);
    let requests = requests(&served);
    let mut random = Rng::with_seed(20);
    let (mut answers, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let (object, operation, octets) = &requests[random.usize(..requests.len())];
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
        match outcome {
            Ok(()) => answers += 1,
            // Exceptions of the specification are unknown to this call.
            Err(error) if error.kind() == Unknown && error.minor() != PANICKED => answers += 1,
            Err(error) => {
                let is_expected =
                    matches!(error.kind(), BadParam | BadTypecode | DataConversion | ImpLimit | InvObjref | Marshal);
                assert!(is_expected, "{operation}: {error}: {octets:?}");
                refused += 1;
            }
        }
    }
    assert!(answers > 500 && refused > 500, "{answers} {refused}");
    // What the requests have set is set again, and the offer from before is found.
    served.admin.set_max_list(100).unwrap();
    let (offers, _, _) = served.lookup.query("Printer", "name == 'laser'", "", &[], &all(), 10).unwrap();
    assert!(offers.iter().any(|offer| offer.properties.iter().any(|it| it.value == text_value("laser"))));
}

//! Requests with arguments at random: each has an answer or an exception of the specification, and the trader goes on.

use fastrand::Rng;
use spandrel::services::cos_trading::lookup::{HowManyProps, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::register::ExportError;
use spandrel::services::cos_trading::{FollowOption, Policy, Property};
use spandrel::types::Any;

use crate::support::Served;

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

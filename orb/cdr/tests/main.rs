//! Common Data Representation: values, engines, hostile octets.

mod adaptive;
mod any;
mod code_sets;
mod decimal;
mod fixed;
mod golden;
mod hostile;
mod hostile_any;
mod interpreted;
mod layout_derives;
mod lending;
mod octet_form;
mod padded;
mod round_trip;
mod shared_values;
mod support;
mod type_code;
mod values;
mod values_hostile;
mod walk_bounds;
mod wide;

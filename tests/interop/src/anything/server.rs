//! The servants.

use std::mem;

use spandrel::{
    CompletionStatus, Orb, Poa, SystemException, SystemExceptionKind,
    types::{Any, TypeCode, WString},
};

use super::samples::{check, find};
use super::show::{rebuild, show, show_type};
use super::{text_of, units_of};
use crate::anything_idl::*;

type Answer<T> = Result<T, SystemException>;

/// Activates the servants and returns the desk's reference as a string.
///
/// # Errors
/// If the ORB cannot listen.
pub fn activate(orb: &Orb) -> Answer<String> {
    orb.register_plain_value::<dyn Node>();
    let poa = Poa::root(orb)?;
    let halver = Halver::unchecked_narrow(&poa.activate(HalverSkeleton::new(Halves))?);
    let desk = poa.activate(DeskSkeleton::new(Server { orb: orb.clone(), halver }))?;
    Ok(orb.object_to_string(&desk))
}

struct Halves;

impl HalverServant for Halves {
    fn half(&self, whole: i32) -> Result<(i32, i32), halver::HalfError> {
        if whole % 2 != 0 {
            return Err(Mismatch { what: "odd".to_owned() }.into());
        }
        Ok((whole / 2, whole - whole / 2))
    }

    fn refuse(&self, minor: u32) -> Answer<()> {
        Err(SystemException::new(SystemExceptionKind::DataConversion, minor, CompletionStatus::No))
    }
}

struct Server {
    orb: Orb,
    halver: Halver,
}

fn mismatch(error: &anyhow::Error) -> Mismatch {
    Mismatch { what: format!("{error:#}") }
}

/// The exception for a value that cannot be decomposed.
fn bad_param(_: anyhow::Error) -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, 0, CompletionStatus::No)
}

impl DeskServant for Server {
    fn exchange(&self, name: &str, value: &Any) -> Result<Any, desk::ExchangeError> {
        let made = check("value", name, value).and_then(|()| (find(name)?.value)());
        made.map_err(|error| mismatch(&error).into())
    }

    fn pass(&self, a: &Any, b: &mut Any) -> Answer<(Any, Any)> {
        Ok((a.clone(), mem::replace(b, a.clone())))
    }

    fn show(&self, value: &Any) -> Answer<String> {
        show(value).map_err(bad_param)
    }

    fn rebuild(&self, value: &Any) -> Answer<Any> {
        rebuild(value).map_err(bad_param)
    }

    fn fail(&self, what: &Any) -> Result<(), desk::FailError> {
        Err(Broke { why: "as you asked".to_owned(), what: what.clone() }.into())
    }

    fn exchange_type(&self, name: &str, r#type: &TypeCode) -> Result<TypeCode, desk::ExchangeTypeError> {
        let check_and_return = || {
            let own = (find(name)?.value)()?.type_code().clone();
            anyhow::ensure!(own.equivalent(r#type), "not equivalent");
            let (seen, expected) = (show_type(r#type)?, show_type(&own)?);
            anyhow::ensure!(seen == expected, "expected {expected}, saw {seen}");
            Ok(own)
        };
        check_and_return().map_err(|error| mismatch(&error).into())
    }

    fn pass_type(&self, a: &TypeCode, b: &mut TypeCode) -> Answer<(TypeCode, TypeCode)> {
        Ok((a.clone(), mem::replace(b, a.clone())))
    }

    fn show_type(&self, r#type: &TypeCode) -> Answer<String> {
        show_type(r#type).map_err(bad_param)
    }

    fn pass_string(&self, a: &str, b: &mut String) -> Answer<(String, String)> {
        Ok((a.to_owned(), mem::replace(b, a.to_owned())))
    }

    fn said(&self, points: &[u16]) -> Answer<String> {
        text_of(points)
    }

    fn heard(&self, text: &str) -> Answer<Units> {
        Ok(units_of(text))
    }

    fn pass_wstring(&self, a: &str, b: &mut WString) -> Answer<(WString, WString)> {
        Ok((a.into(), mem::replace(b, a.into())))
    }

    fn pass_wchar(&self, a: char, b: &mut char) -> Answer<(char, char)> {
        Ok((a, mem::replace(b, a)))
    }

    fn pass_texts(&self, texts: &[WString]) -> Answer<WideTexts> {
        Ok(texts.to_vec())
    }

    fn pass_pair(&self, pair: &WidePair) -> Answer<WidePair> {
        Ok(pair.clone())
    }

    fn pass_choice(&self, choice: &WideChoice) -> Answer<WideChoice> {
        Ok(choice.clone())
    }

    fn wide_units(&self, text: &str) -> Answer<Units> {
        Ok(units_of(text))
    }

    fn wide_text(&self, points: &[u16]) -> Answer<WString> {
        Ok(text_of(points)?.into())
    }

    fn the_halver(&self) -> Answer<Option<Halver>> {
        Ok(Some(self.halver.clone()))
    }

    fn shutdown(&self) -> Answer<()> {
        self.orb.begin_shutdown()
    }
}

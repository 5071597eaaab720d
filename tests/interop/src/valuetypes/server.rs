//! The servant, with the types of `idl/values.idl` only.

use spandrel::types::values::{AbstractRef, ValueBase, ValueRef};
use spandrel::{Orb, Poa, SystemException};

use super::{look, tale};
use crate::values_idl::*;

look!(crate::values_idl);
tale!(crate::values_idl);

/// Activates the servant and returns its reference as a string.
///
/// # Errors
/// If the ORB cannot listen.
pub fn activate(orb: &Orb) -> Result<String, SystemException> {
    register(orb);
    let poa = Poa::root(orb)?;
    let thing = Thing::unchecked_narrow(&poa.activate(ThingSkeleton::new(Object))?);
    let exchange = poa.activate(ExchangeSkeleton::new(Server { orb: orb.clone(), thing }))?;
    Ok(orb.object_to_string(&exchange))
}

struct Object;

impl DescribableServant for Object {
    fn describe(&self, detail: i32) -> Answer<String> {
        Ok(format!("an object, {detail}"))
    }
}

impl ThingServant for Object {}

struct Server {
    orb: Orb,
    thing: Thing,
}

type Answer<T> = Result<T, SystemException>;
type Value<T> = Option<ValueRef<T>>;
type Described = Option<AbstractRef<Describable, dyn DescribableServant>>;

impl ExchangeServant for Server {
    fn echo_pair(&self, p: &Pair) -> Answer<Pair> {
        Ok(p.clone())
    }

    fn echo_base(&self, b: Option<&ValueRef<dyn Base>>) -> Answer<Value<dyn Base>> {
        Ok(b.cloned())
    }

    fn echo_bases(&self, b: Option<&ValueRef<dyn Base>>, again: &mut Value<dyn Base>) -> Answer<Value<dyn Base>> {
        Ok(std::mem::replace(again, b.cloned()))
    }

    fn echo_text(&self, t: Option<&ValueRef<Text>>) -> Answer<(Value<Text>, Value<Text>)> {
        Ok((t.cloned(), t.cloned()))
    }

    fn echo_numbers(&self, n: Option<&ValueRef<Numbers>>) -> Answer<Value<Numbers>> {
        Ok(n.cloned())
    }

    fn echo_pair_box(&self, p: Option<&ValueRef<PairBox>>) -> Answer<Value<PairBox>> {
        Ok(p.cloned())
    }

    fn echo_describable(&self, d: Option<&AbstractRef<Describable, dyn DescribableServant>>) -> Answer<Described> {
        Ok(d.cloned())
    }

    fn echo_value(&self, v: Option<&ValueRef<dyn ValueBase>>) -> Answer<Value<dyn ValueBase>> {
        Ok(v.cloned())
    }

    fn look(&self, n: Option<&ValueRef<dyn Node>>) -> Answer<String> {
        Ok(look(n))
    }

    fn ask(&self, d: Option<&AbstractRef<Describable, dyn DescribableServant>>, detail: i32) -> Answer<String> {
        match d {
            None => Ok("nothing".to_owned()),
            Some(AbstractRef::Object(object)) => object.describe(detail),
            Some(AbstractRef::Value(value)) => value.describe(detail),
        }
    }

    fn an_object(&self) -> Answer<Described> {
        Ok(Some(AbstractRef::Object(self.thing.clone().into())))
    }

    fn refuse(&self, b: Option<&ValueRef<dyn Base>>) -> Result<(), exchange::RefuseError> {
        Err(Refused { what: b.cloned() }.into())
    }

    fn truncate(
        &self,
        b: Option<&ValueRef<dyn Base>>,
        n: Option<&ValueRef<dyn Node>>,
    ) -> Answer<(i32, Value<dyn Node>)> {
        Ok((b.map_or(0, |base| base.x()), n.cloned()))
    }

    fn shutdown(&self) -> Answer<()> {
        self.orb.begin_shutdown()
    }
}

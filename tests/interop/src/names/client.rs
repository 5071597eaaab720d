//! The client: resolves names.

use anyhow::{Result, bail, ensure};
use spandrel::{Orb, SystemException, SystemExceptionKind};

use super::NAMED;
use crate::suite::{Suite, Tally};

/// A case; its error describes the failure.
type Case = fn(&Names<'_>) -> Result<()>;

/// Runs all cases against the naming service at this port; `say` receives a line for each.
pub fn run(orb: &Orb, port: &str, say: &mut dyn FnMut(&str)) -> Tally {
    let names = Names { orb, port };
    let cases: [(&str, Case); 9] = [
        ("corbaname", |names| names.resolves("a/b.kind")),
        ("corbaname_escaped", |names| names.resolves("x%5c/y%5c.z%5c%5c.k%25%23%20k")),
        ("corbaname_context", |names| names.is_a_context(&names.context())),
        ("corbaname_unknown", |names| names.is_unknown("a/nobody")),
        ("corbaname_malformed", |names| names.is_unknown("a//b")),
        ("plain_key", |names| names.is_a_context(&format!("corbaloc:iiop:1.2@127.0.0.1:{}/NameService", names.port))),
        ("is_a", |names| names.is_a()),
        ("non_existent", |names| names.non_existent()),
        ("is_equivalent", |names| names.is_equivalent()),
    ];
    let mut suite = Suite::new("", say);
    for (name, case) in cases {
        suite.case(&format!("names/{name}"), || case(&names));
    }
    suite.tally
}

struct Names<'o> {
    orb: &'o Orb,
    port: &'o str,
}

impl Names<'_> {
    fn context(&self) -> String {
        format!("corbaname:iiop:1.2@127.0.0.1:{}/NameService", self.port)
    }

    fn url(&self, name: &str) -> String {
        format!("{}#{name}", self.context())
    }

    fn resolves(&self, name: &str) -> Result<()> {
        let object = self.orb.string_to_object(&self.url(name))?;
        ensure!(object.is_a(NAMED)?, "the name resolves to another object");
        Ok(())
    }

    fn is_a_context(&self, url: &str) -> Result<()> {
        let context = self.orb.string_to_object(url)?;
        ensure!(context.is_a("IDL:omg.org/CosNaming/NamingContext:1.0")?, "the object is not a naming context");
        Ok(())
    }

    fn is_unknown(&self, name: &str) -> Result<()> {
        match self.orb.string_to_object(&self.url(name)) {
            Ok(_) => bail!("the name resolves to an object"),
            Err(error) if error.kind() == SystemExceptionKind::BadParam => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_a(&self) -> Result<()> {
        let mut ior = self.orb.string_to_object(&self.url("a/b.kind"))?.ior().clone();
        ior.type_id = String::new();
        let object = self.orb.reference(ior);
        ensure!(object.is_a(NAMED)? && !object.is_a("IDL:Interop/Other:1.0")?, "is_a returned the wrong answer");
        Ok(())
    }

    fn non_existent(&self) -> Result<()> {
        ensure!(!self.orb.string_to_object(&self.url("a/b.kind"))?.non_existent()?, "the object does not exist");
        let gone = self.orb.string_to_object(&format!("corbaloc::127.0.0.1:{}/nobody", self.port))?;
        let answer: Result<bool, SystemException> = gone.non_existent();
        ensure!(answer?, "an object that was never created exists");
        Ok(())
    }

    fn is_equivalent(&self) -> Result<()> {
        let find = |name| self.orb.string_to_object(&self.url(name));
        let (one, other) = (find("a/b.kind")?, find("x%5c/y%5c.z%5c%5c.k%25%23%20k")?);
        let context = self.orb.string_to_object(&self.context())?;
        ensure!(
            one.is_equivalent(&other) && one.hash(1000) == other.hash(1000),
            "two names resolve to different objects"
        );
        ensure!(!one.is_equivalent(&context), "different objects are equivalent");
        Ok(())
    }
}

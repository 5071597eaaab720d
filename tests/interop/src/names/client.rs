//! The client's side: what names lead to.

use anyhow::{Result, bail, ensure};
use spandrel::{Orb, SystemException, SystemExceptionKind};

use super::NAMED;
use crate::suite::{Suite, Tally};

/// Fails with what is wrong.
type Case = fn(&Names<'_>) -> Result<()>;

/// Runs all cases against the naming service at this port; `say` gets a line for each.
pub fn run(orb: &Orb, port: &str, say: &mut dyn FnMut(&str)) -> Tally {
    let names = Names { orb, port };
    let cases: [(&str, Case); 9] = [
        ("corbaname", |names| names.leads_to_it("a/b.kind")),
        ("corbaname_escaped", |names| names.leads_to_it("x%5c/y%5c.z%5c%5c.k%25%23%20k")),
        ("corbaname_context", |names| names.is_a_context(&names.context())),
        ("corbaname_unknown", |names| names.is_unknown("a/nobody")),
        ("corbaname_malformed", |names| names.is_unknown("a//b")),
        ("plain_key", |names| names.is_a_context(&format!("corbaloc:iiop:1.2@127.0.0.1:{}/NameService", names.port))),
        ("is_a", |names| names.says_what_it_is()),
        ("non_existent", |names| names.says_whether_it_is()),
        ("is_equivalent", |names| names.is_the_same_by_any_name()),
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

    fn leads_to_it(&self, name: &str) -> Result<()> {
        let object = self.orb.string_to_object(&self.url(name))?;
        ensure!(object.is_a(NAMED)?, "it leads to something else");
        Ok(())
    }

    fn is_a_context(&self, url: &str) -> Result<()> {
        let context = self.orb.string_to_object(url)?;
        ensure!(context.is_a("IDL:omg.org/CosNaming/NamingContext:1.0")?, "it is no naming context");
        Ok(())
    }

    fn is_unknown(&self, name: &str) -> Result<()> {
        match self.orb.string_to_object(&self.url(name)) {
            Ok(_) => bail!("it leads somewhere"),
            Err(error) if error.kind() == SystemExceptionKind::BadParam => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn says_what_it_is(&self) -> Result<()> {
        let mut ior = self.orb.string_to_object(&self.url("a/b.kind"))?.ior().clone();
        ior.type_id = String::new();
        let object = self.orb.reference(ior);
        ensure!(object.is_a(NAMED)? && !object.is_a("IDL:Interop/Other:1.0")?, "it is not what it is");
        Ok(())
    }

    fn says_whether_it_is(&self) -> Result<()> {
        ensure!(!self.orb.string_to_object(&self.url("a/b.kind"))?.non_existent()?, "it does not exist");
        let gone = self.orb.string_to_object(&format!("corbaloc::127.0.0.1:{}/nobody", self.port))?;
        let answer: Result<bool, SystemException> = gone.non_existent();
        ensure!(answer?, "what nobody has ever made exists");
        Ok(())
    }

    fn is_the_same_by_any_name(&self) -> Result<()> {
        let find = |name| self.orb.string_to_object(&self.url(name));
        let (one, other) = (find("a/b.kind")?, find("x%5c/y%5c.z%5c%5c.k%25%23%20k")?);
        let context = self.orb.string_to_object(&self.context())?;
        ensure!(one.is_equivalent(&other) && one.hash(1000) == other.hash(1000), "it is two");
        ensure!(!one.is_equivalent(&context), "it is everything");
        Ok(())
    }
}

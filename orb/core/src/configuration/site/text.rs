//! The language of a file of sites: TOML with known keys.

use std::{ops::Range, path::Path};

use spandrel_error::excerpt;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Site, SiteError, SiteSetting, did_you_mean};
use crate::OrbOption;

const SITES: &str = "sites";
const REFERENCES: &str = "references";
const OPTIONS: &str = "options";

/// The keys of a site whose values are paths, with the options that they set.
const FILES: [(&str, &str); 5] = [
    ("ca", "-ORBSSLCA"),
    ("cert", "-ORBSSLCertificate"),
    ("key", "-ORBSSLKey"),
    ("policy", "--policy"),
    ("audit", "--audit"),
];

/// Parses the text of a file of sites.
pub(super) fn parse(text: &str, file: &Path) -> Result<Vec<Site>, SiteError> {
    let document = Document::new(text, file);
    let malformed = |error: toml::de::Error| {
        document.error(error.span().unwrap_or_default(), error.message().trim().replace('\n', "; "))
    };
    let mut sites = Vec::new();
    for (key, value) in DeTable::parse(text).map_err(malformed)?.into_inner() {
        if key.get_ref() != SITES {
            return Err(document.unknown_key(&key, [SITES]));
        }
        for (name, site) in document.table(value, "a table for each site, such as [sites.plant]")? {
            sites.push((name.span().start, document.site(name.into_inner().into_owned(), site)?));
        }
    }
    sites.sort_by_key(|(start, _)| *start);
    Ok(sites.into_iter().map(|(_, site)| site).collect())
}

/// A text, and the offsets at which its lines begin.
struct Document<'t> {
    text: &'t str,
    file: &'t Path,
    lines: Vec<usize>,
}

/// A key and its value, as the parser returns them.
type Entry<'t> = (Spanned<std::borrow::Cow<'t, str>>, Spanned<DeValue<'t>>);

impl<'t> Document<'t> {
    fn new(text: &'t str, file: &'t Path) -> Self {
        let lines = [0].into_iter().chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Self { text, file, lines }
    }

    /// The line and the column of an offset, from 1.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1];
        (line, self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1)
    }

    fn error(&self, span: Range<usize>, reason: impl Into<String>) -> SiteError {
        SiteError { position: Some(self.position(span.start)), ..SiteError::of_file(self.file, reason) }
    }

    fn unknown_key<'k>(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        candidates: impl IntoIterator<Item = &'k str>,
    ) -> SiteError {
        let candidates: Vec<&str> = candidates.into_iter().collect();
        let hint = match did_you_mean(key.get_ref(), candidates.iter().copied()) {
            hint if hint.is_empty() => format!(": expected `{}`", candidates.join("`, `")),
            hint => hint,
        };
        self.error(key.span(), format!("unknown key `{}`{hint}", excerpt(key.get_ref())))
    }

    /// The entries of a table, in the order of the text.
    fn table(&self, value: Spanned<DeValue<'t>>, expected: &str) -> Result<Vec<Entry<'t>>, SiteError> {
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            return Err(self.error(span, format!("expected {expected}")));
        };
        let mut entries: Vec<Entry<'t>> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Ok(entries)
    }

    fn site(&self, name: String, value: Spanned<DeValue<'t>>) -> Result<Site, SiteError> {
        let mut site = Site { name, file: self.file.to_owned(), settings: Vec::new(), policy: None, audit: None };
        for (key, value) in self.table(value, "a table with the keys of the site")? {
            match key.get_ref().as_ref() {
                REFERENCES => {
                    for (name, url) in self.table(value, "a table of names and URLs")? {
                        let setting = |url: &str| format!("{}={url}", name.get_ref());
                        site.settings.push(self.text_setting("-ORBInitRef", &url, "a URL", setting)?);
                    }
                }
                OPTIONS => {
                    for (option, value) in self.table(value, "a table of options and values")? {
                        self.check_option(&option)?;
                        self.add_option(&mut site.settings, option.get_ref(), &value)?;
                    }
                }
                other => {
                    let Some((key, option)) = FILES.into_iter().find(|(key, _)| *key == other) else {
                        let candidates = FILES.map(|(key, _)| key).into_iter().chain([REFERENCES, OPTIONS]);
                        return Err(self.unknown_key(&key, candidates));
                    };
                    let folder = self.file.parent().unwrap_or(Path::new(""));
                    let path = |path: &str| folder.join(path).display().to_string();
                    let setting = self.text_setting(option, &value, "the path of a file", path)?;
                    match key {
                        "policy" => site.policy = Some(setting),
                        "audit" => site.audit = Some(setting),
                        _ => site.settings.push(setting),
                    }
                }
            }
        }
        site.settings.sort_by_key(|setting| setting.option != "-ORBProfile"); // as on a command line
        Ok(site)
    }

    fn setting(&self, option: &str, value: String, span: Range<usize>) -> SiteSetting {
        let (line, column) = self.position(span.start);
        SiteSetting { option: option.to_owned(), value, line, column }
    }

    /// The setting of a value that is a text, and not empty.
    fn text_setting(
        &self,
        option: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        change: impl FnOnce(&str) -> String,
    ) -> Result<SiteSetting, SiteError> {
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| self.error(value.span(), format!("expected {expected}, as a text")))?;
        Ok(self.setting(option, change(text), value.span()))
    }

    /// Refuses an option that has a key of its own, and one without the beginning of all options.
    fn check_option(&self, option: &Spanned<std::borrow::Cow<'_, str>>) -> Result<(), SiteError> {
        let name = option.get_ref().as_ref();
        let of_listening = OrbOption::find("-ORBListenEndpoints").map_or(&[][..], |option| option.names);
        let key = FILES.into_iter().find(|(_, file_option)| *file_option == name).map(|(key, _)| key);
        let reason = match (key, name) {
            (Some(key), _) => format!("`{name}` is not one of the options of a site: its key `{key}` names the file"),
            (None, "-ORBInitRef") => {
                format!("`{name}` is not one of the options of a site: `{REFERENCES}` has the URLs")
            }
            (None, name) if of_listening.contains(&name) => {
                format!("`{name}` is not one of the options of a site: each process has endpoints of its own")
            }
            (None, "-ORBSite") => format!("`{name}` is not one of the options of a site"),
            (None, _) if name.starts_with("-ORB") => return Ok(()),
            (None, _) => {
                let names = OrbOption::tables().iter().copied().flatten().flat_map(|option| option.names).copied();
                let full = format!("-ORB{}", name.trim_start_matches('-').trim_start_matches("ORB"));
                return Err(match did_you_mean(&full, names) {
                    hint if hint.is_empty() => {
                        self.error(option.span(), format!("`{}` is not an ORB option", excerpt(name)))
                    }
                    hint => self.error(option.span(), format!("`{}` is not an ORB option{hint}", excerpt(name))),
                });
            }
        };
        Err(self.error(option.span(), reason))
    }

    /// Adds the settings of an option: one, or one for each element of a list.
    fn add_option(
        &self,
        settings: &mut Vec<SiteSetting>,
        option: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SiteError> {
        if let DeValue::Array(elements) = value.get_ref() {
            for element in elements.iter() {
                settings.push(self.scalar(option, element)?);
            }
            return Ok(());
        }
        settings.push(self.scalar(option, value)?);
        Ok(())
    }

    fn scalar(&self, option: &str, value: &Spanned<DeValue<'_>>) -> Result<SiteSetting, SiteError> {
        let text = match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Boolean(is_on) => if *is_on { "yes" } else { "no" }.to_owned(),
            _ => {
                let expected = "a text, a whole decimal number, a boolean, or a list of these";
                return Err(self.error(value.span(), format!("expected {expected} for `{}`", excerpt(option))));
            }
        };
        Ok(self.setting(option, text, value.span()))
    }
}

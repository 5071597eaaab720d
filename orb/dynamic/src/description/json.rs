//! Calls whose arguments and results are JSON, in the form of `docs/json.md`.

use spandrel_cdr::{Any, TcKind, TypeCode};
use spandrel_giop::SystemException;

use super::{InterfaceDescription, OperationDescription, Outcome, Undescribed};
use crate::any::quoted_json;
use crate::{DynAny, DynAnyError, RequestError, TextContext, TextError, UnknownUserException};

/// The reason for which an operation cannot be called by its name.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallableError {
    /// The interface has no operation or attribute of the name.
    #[error("`{interface}` has no operation or attribute `{name}`")]
    Unknown {
        /// The interface's repository id.
        interface: String,
        /// The name that was looked up.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
    /// Its types have no values.
    #[error("`{name}` of `{interface}` cannot be called: {reason}")]
    NotCallable {
        /// The interface's repository id.
        interface: String,
        /// The name of the operation or attribute.
        name: String,
        /// The reason, e.g. a type without values.
        reason: String,
    },
    /// A value is given for a readonly attribute.
    #[error("`{name}` of `{interface}` is a readonly attribute: it can be got, and not set")]
    ReadOnly {
        /// The interface's repository id.
        interface: String,
        /// The name of the readonly attribute.
        name: String,
    },
}
spandrel_error::debug_as_report!(CallableError);

/// The reason for which arguments are not those of an operation.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// Another number of arguments.
    #[error("`{operation}` takes {expected} argument{}, not {given}", if *expected == 1 { "" } else { "s" })]
    Number {
        /// The declaration of the operation in IDL.
        operation: String,
        /// The number of its `in` and `inout` parameters.
        expected: usize,
        /// The number of arguments.
        given: usize,
    },
    /// A text that is not a value of its parameter's type.
    #[error("invalid value `{text}` for `{parameter}`: expected {expected}")]
    Value {
        /// The name of the parameter.
        parameter: String,
        /// The text, of which a long one is cut.
        text: String,
        /// The type of the parameter in IDL.
        expected: String,
        /// The place in the text, and the reason.
        #[source]
        source: TextError,
    },
    /// JSON that is neither an object nor an array, such as the value of the only parameter alone.
    #[error("invalid arguments for `{operation}`: expected an object or an array, such as `{example}`")]
    Bare {
        /// The declaration of the operation in IDL.
        operation: String,
        /// An object with the parameters' names.
        example: String,
    },
    /// A text that is not an object with the parameters' values.
    #[error("invalid arguments for `{operation}`")]
    Arguments {
        /// The declaration of the operation in IDL.
        operation: String,
        /// The place in the text, and the reason.
        #[source]
        source: TextError,
    },
    /// A value that cannot be encoded.
    #[error("an argument cannot be encoded")]
    Encoding(#[source] DynAnyError),
}
spandrel_error::debug_as_report!(ArgumentError);

impl InterfaceDescription {
    /// The operation of this IDL name, or the accessor of the attribute: its getter, or with `is_set` its setter.
    ///
    /// # Errors
    /// [`CallableError`].
    pub fn callable(&self, name: &str, is_set: bool) -> Result<&OperationDescription, CallableError> {
        let (interface, owned) = (self.id().to_owned(), name.to_owned());
        if let Some(Undescribed { reason, .. }) = self.undescribed().iter().find(|it| it.name == name) {
            return Err(CallableError::NotCallable { interface, name: owned, reason: reason.clone() });
        }
        let accessor = if is_set { "_set_" } else { "_get_" };
        if let Some(operation) = self.find(name).or_else(|| self.find(&format!("{accessor}{name}"))) {
            return Ok(operation);
        }
        if self.attributes().iter().any(|attribute| attribute.name == name && attribute.is_readonly) {
            return Err(CallableError::ReadOnly { interface, name: owned });
        }
        let attributes = self.attributes().iter().map(|attribute| attribute.name.clone());
        let operations = self.operations().iter().map(|operation| operation.name.clone());
        let known = attributes.chain(operations.filter(|name| !name.starts_with('_'))).collect();
        Err(CallableError::Unknown { interface, name: owned, known })
    }
}

impl OperationDescription {
    /// Reads its arguments, each from a text or JSON of its own, as [`DynAny::from_text_with`] does: the values of its
    /// `in` and `inout` parameters, in order.
    ///
    /// # Errors
    /// [`ArgumentError`].
    pub fn read_argument_list(
        &self,
        texts: &[impl AsRef<str>],
        context: &TextContext<'_>,
    ) -> Result<Vec<Any>, ArgumentError> {
        let sent: Vec<_> = self.parameters.iter().filter(|parameter| parameter.mode.is_sent()).collect();
        if sent.len() != texts.len() {
            let operation = self.to_string();
            return Err(ArgumentError::Number { operation, expected: sent.len(), given: texts.len() });
        }
        let read = sent.iter().zip(texts).map(|(parameter, text)| {
            let text = text.as_ref();
            let value = DynAny::from_text_with(&parameter.type_code, text, context);
            let value = value.map_err(|source| ArgumentError::Value {
                parameter: parameter.name.clone(),
                text: shortened(text),
                expected: declared_and_original(&parameter.type_code),
                source,
            })?;
            value.to_any().map_err(ArgumentError::Encoding)
        });
        read.collect()
    }

    /// Reads its arguments from one text: a JSON object of the values of its `in` and `inout` parameters by their
    /// names, or an array of them in order. An empty text is an object without members.
    ///
    /// ```
    /// use spandrel_cdr::TypeCode;
    /// use spandrel_dynamic::{ArgMode, OperationDescription, TextContext};
    ///
    /// let transfer = OperationDescription::new("transfer")
    ///     .parameter(ArgMode::In, "to", TypeCode::STRING)
    ///     .parameter(ArgMode::In, "cents", TypeCode::LONGLONG);
    /// let context = TextContext::new();
    /// let by_name = transfer.read_arguments(r#"{"cents": 5, "to": "Ada"}"#, &context)?;
    /// assert_eq!(by_name, transfer.read_arguments(r#"["Ada", 5]"#, &context)?);
    /// assert_eq!(by_name[1].extract::<i64>(), Ok(5));
    /// assert!(transfer.read_arguments(r#"{"to": "Ada"}"#, &context).is_err());
    /// # Ok::<(), spandrel_dynamic::ArgumentError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArgumentError`].
    pub fn read_arguments(&self, text: &str, context: &TextContext<'_>) -> Result<Vec<Any>, ArgumentError> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let is_array = text.trim_start().starts_with('[');
        let sent = self.parameters.iter().filter(|parameter| parameter.mode.is_sent());
        // Members without names are read in order.
        let members: Vec<(String, TypeCode)> = sent
            .map(|parameter| {
                (if is_array { String::new() } else { parameter.name.clone() }, parameter.type_code.clone())
            })
            .collect();
        let refused = |source| ArgumentError::Arguments { operation: self.to_string(), source };
        if members.is_empty() {
            // A structure has members.
            let is_empty = text.split_whitespace().collect::<String>();
            return match is_empty.as_str() {
                "{}" | "[]" => Ok(Vec::new()),
                "null" if !context.is_strict => Ok(Vec::new()),
                _ => Err(ArgumentError::Number { operation: self.to_string(), expected: 0, given: 1 }),
            };
        }
        if context.is_strict && !text.trim_start().starts_with(['{', '[']) {
            let names: Vec<_> = members.iter().map(|(name, _)| format!("{}: …", quoted_json(name))).collect();
            let example = format!("{{{}}}", names.join(", "));
            return Err(ArgumentError::Bare { operation: self.to_string(), example });
        }
        let type_code = TypeCode::structure(String::new(), self.name.clone(), &members)
            .map_err(|error| ArgumentError::Encoding(error.into()))?;
        let arguments = DynAny::from_text_with(&type_code, text, context).map_err(refused)?;
        arguments.components().iter().map(|value| value.to_any().map_err(ArgumentError::Encoding)).collect()
    }
}

impl Outcome {
    /// The results as one JSON object: `{"result":…,"out":{"name":…}}`; without `result` for `void`.
    ///
    /// # Errors
    /// [`DynAnyError::TooLarge`] for a value with a form of more than 128 MiB.
    pub fn to_json(&self) -> Result<String, DynAnyError> {
        let mut json = String::from("{");
        if self.result.type_code().kind() != TcKind::Void {
            json += &format!("\"result\":{},", DynAny::new(&self.result)?.to_json()?);
        }
        let mut outs = Vec::new();
        for out in &self.outs {
            if let Some(value) = &out.value {
                outs.push(format!("{}:{}", quoted_json(&out.name), DynAny::new(value)?.to_json()?));
            }
        }
        json += &format!("\"out\":{{{}}}}}", outs.join(","));
        Ok(json)
    }
}

impl UnknownUserException {
    /// The exception as one JSON object: `{"id":…,"members":{…}}`; the members are null if they cannot be decoded. The id
    /// is cut as in a message.
    #[must_use]
    pub fn to_json(&self) -> String {
        let members = DynAny::new(&self.exception).and_then(|members| members.to_json());
        let members = members.unwrap_or_else(|_| "null".to_owned());
        let id = spandrel_error::excerpt(self.repository_id()).to_string();
        format!("{{\"id\":{},\"members\":{members}}}", quoted_json(&id))
    }
}

impl RequestError {
    /// The failure as one JSON object: `{"error":…,"exception":{…}}` for an exception that the operation raised,
    /// `{"error":…,"causes":[…],"system_exception":{…}}` for a system exception.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Raised(raised) => {
                let members = DynAny::new(&raised.exception).map(|members| format!(" {members}")).unwrap_or_default();
                let text = quoted_json(&format!("{raised}{members}"));
                format!("{{\"error\":{text},\"exception\":{}}}", raised.to_json())
            }
            Self::System(exception) => {
                let mut causes = Vec::new();
                let mut cause = std::error::Error::source(exception);
                while let Some(error) = cause {
                    causes.push(quoted_json(&error.to_string()));
                    cause = error.source();
                }
                let (text, causes) = (quoted_json(&exception.to_string()), causes.join(","));
                let exception = system_exception_json(exception);
                format!("{{\"error\":{text},\"causes\":[{causes}],\"system_exception\":{exception}}}")
            }
        }
    }
}

/// A system exception as one JSON object: `{"id":…,"minor":…,"completed":…}`.
#[must_use]
pub fn system_exception_json(exception: &SystemException) -> String {
    format!(
        "{{\"id\":{},\"minor\":{},\"completed\":{}}}",
        quoted_json(exception.kind().repository_id()),
        exception.minor(),
        quoted_json(&exception.completed().to_string())
    )
}

/// The declared type, and behind it the original one of an alias.
fn declared_and_original(type_code: &TypeCode) -> String {
    let (declared, original) = (type_code.type_spec().to_string(), type_code.without_aliases().type_spec().to_string());
    if declared == original { declared } else { format!("{declared} ({original})") }
}

/// A text for a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

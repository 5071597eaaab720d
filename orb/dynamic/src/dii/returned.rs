//! The results of a request, and its arguments after the call.

use spandrel_cdr::{Any, Decode, TcKind, TypeCode, Typed};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::Answer;

use super::{
    Request, Results,
    body::Maker,
    request::{State, bad_inv_order},
};
use crate::{ArgMode, NamedValue, NvList, named::no_argument};

impl Request {
    /// The reply, or the error that no results are available.
    fn answer(&self) -> Result<&Answer, SystemException> {
        match &self.state {
            State::Answered(answer) => Ok(answer),
            State::Failed => Err(SystemException::bad_inv_order(minor::RESULT_ALREADY_RECEIVED, CompletionStatus::No)
                .with_detail("the request got no results")),
            _ => Err(bad_inv_order(minor::REQUEST_NOT_SENT)),
        }
    }

    /// The results, to be decoded in order: the return value, then the `inout` and `out` arguments.
    ///
    /// # Errors
    /// BAD_INV_ORDER without a reply.
    pub fn results(&self) -> Result<Results<'_>, SystemException> {
        let input = self.read(self.answer()?);
        Ok(Results::new(input, &self.return_type, self.body.arguments(), &self.operation))
    }

    /// Decodes the return value of the reply, and checks its type against the request's.
    ///
    /// # Errors
    /// BAD_INV_ORDER without a reply; BAD_PARAM for another type; MARSHAL for malformed octets.
    pub fn return_value<T: Decode + Typed>(&self) -> Result<T, SystemException> {
        let mut results = self.results()?;
        let maker: Maker = T::type_code;
        if !self.return_maker.get().is_some_and(|current| std::ptr::fn_addr_eq(current, maker)) {
            results.check(&self.return_type, &T::type_code())?;
            self.return_maker.set(Some(maker));
        }
        results.decode()
    }

    /// The return value with its type; of type `void` without one.
    ///
    /// # Errors
    /// BAD_INV_ORDER without a reply; MARSHAL for malformed octets.
    pub fn return_any(&self) -> Result<Any, SystemException> {
        if self.return_type.kind() == TcKind::Void {
            self.answer()?;
            return Ok(Any::write(TypeCode::VOID, |_| Ok(()))?);
        }
        self.results()?.take_any()
    }

    /// The value of an argument: the returned one, if the reply has it, otherwise the sent one.
    ///
    /// # Errors
    /// As [`Request::return_value`]; BAD_PARAM for an unknown argument.
    pub fn argument<T: Decode + Typed>(&self, index: usize) -> Result<T, SystemException> {
        match self.returned(index)? {
            Some(mut results) => results.take(),
            None => self.body.sent_as(index, self.target.orb()),
        }
    }

    /// As [`Request::argument`], with its type.
    ///
    /// # Errors
    /// BAD_INV_ORDER without a reply; BAD_PARAM for an unknown argument; MARSHAL for malformed octets.
    pub fn argument_any(&self, index: usize) -> Result<Any, SystemException> {
        match self.returned(index)? {
            Some(mut results) => results.take_any(),
            None => Ok(self.body.sent(index, self.target.orb())?),
        }
    }

    /// The results from this argument on; `None` if it is not returned.
    fn returned(&self, index: usize) -> Result<Option<Results<'_>>, SystemException> {
        let arguments = self.body.arguments();
        let argument = arguments.get(index).ok_or_else(|| no_argument(index, arguments.len()))?;
        if !argument.mode.is_returned() {
            return Ok(None);
        }
        let mut results = self.results()?;
        if self.return_type.kind() != TcKind::Void {
            results.skip()?;
        }
        let before = arguments[..index].iter().filter(|argument| argument.mode.is_returned()).count();
        for _ in 0..before {
            results.skip()?;
        }
        Ok(Some(results))
    }

    /// All arguments (`arguments`): the sent values and, after the reply, the returned ones.
    ///
    /// # Errors
    /// MARSHAL for malformed results.
    pub fn arguments(&self) -> Result<NvList, SystemException> {
        let has_arrived = matches!(self.state, State::Answered(_));
        let arguments = self.body.arguments().iter().enumerate();
        arguments
            .map(|(index, argument)| {
                let (name, mode) = (argument.name.clone(), argument.mode);
                let value = match mode {
                    ArgMode::In => self.argument_any(index)?,
                    _ if has_arrived => self.argument_any(index)?,
                    ArgMode::InOut => self.body.sent(index, self.target.orb())?,
                    ArgMode::Out => return Ok(NamedValue::of_type(name, mode, argument.type_code.clone())),
                };
                Ok(NamedValue::new(name, mode, value))
            })
            .collect()
    }
}

//! Gives an endpoint the transfer methods of its traits as inherent methods, so that its users need no trait
//! in scope.
//!
//! One list for all families: a new method of a trait is added here once. Other crates with families use
//! these macros too.

/// The methods of [`Receive`](crate::Receive), as inherent ones.
#[doc(hidden)]
#[macro_export]
macro_rules! inherent_receive {
    ($endpoint:ty) => {
        /// Receiving; the same methods as in the trait [`Receive`](trait@$crate::Receive).
        impl $endpoint {
            /// Receives available octets into `buffer` and returns their number; waits while none are
            /// available. Zero is the end of the stream (unless `buffer` is empty).
            ///
            /// # Errors
            /// Any error of the operating system; a receive timeout satisfies
            /// [`is_timeout`](fn@$crate::is_timeout).
            #[inline]
            pub fn recv(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                $crate::Receive::recv(self, buffer)
            }

            /// Receives available octets into `slices`, in order, and returns their number. Zero is the end
            /// of the stream.
            ///
            /// # Errors
            /// As [`recv`](Self::recv).
            #[inline]
            pub fn recv_v(&self, slices: &mut [::std::io::IoSliceMut<'_>]) -> ::std::io::Result<usize> {
                $crate::Receive::recv_v(self, slices)
            }

            /// Like [`recv`](Self::recv), but never waits.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) when nothing is queued; those of the operating
            /// system.
            #[inline]
            pub fn try_recv(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                $crate::Receive::try_recv(self, buffer)
            }

            /// Like [`recv_v`](Self::recv_v), but never waits.
            ///
            /// # Errors
            /// As [`try_recv`](Self::try_recv).
            #[inline]
            pub fn try_recv_v(&self, slices: &mut [::std::io::IoSliceMut<'_>]) -> ::std::io::Result<usize> {
                $crate::Receive::try_recv_v(self, slices)
            }

            /// The time limit of one `recv`; `None` waits for ever.
            ///
            /// # Errors
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a time of zero; others of the operating
            /// system.
            #[inline]
            pub fn set_recv_timeout(&self, timeout: Option<::std::time::Duration>) -> ::std::io::Result<()> {
                $crate::Receive::set_recv_timeout(self, timeout)
            }

            /// Fills `buffer`.
            ///
            /// # Errors
            /// [`TransferError`](struct@$crate::TransferError) with the number of octets received before the
            /// end of the stream ([`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof)), a timeout or another
            /// error.
            #[inline]
            pub fn recv_n(&self, buffer: &mut [u8]) -> Result<(), $crate::TransferError> {
                $crate::Receive::recv_n(self, buffer)
            }

            /// Fills all of `slices`, which are advanced past the octets received.
            ///
            /// # Errors
            /// As [`recv_n`](Self::recv_n).
            #[inline]
            pub fn recv_n_v(&self, slices: &mut [::std::io::IoSliceMut<'_>]) -> Result<(), $crate::TransferError> {
                $crate::Receive::recv_n_v(self, slices)
            }

            /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// [`TimedOut`](std::io::ErrorKind::TimedOut) on a timeout; those of the operating system.
            #[inline]
            pub fn recv_within(&self, buffer: &mut [u8], timeout: ::std::time::Duration) -> ::std::io::Result<usize> {
                $crate::Receive::recv_within(self, buffer, timeout)
            }

            /// Like [`recv_v`](Self::recv_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv_within`](Self::recv_within).
            #[inline]
            pub fn recv_v_within(
                &self,
                slices: &mut [::std::io::IoSliceMut<'_>],
                timeout: ::std::time::Duration,
            ) -> ::std::io::Result<usize> {
                $crate::Receive::recv_v_within(self, slices, timeout)
            }

            /// Like [`recv_n`](Self::recv_n), but takes no longer than `timeout` in all.
            ///
            /// # Errors
            /// As [`recv_n`](Self::recv_n), with [`TimedOut`](std::io::ErrorKind::TimedOut) on a timeout.
            #[inline]
            pub fn recv_n_within(
                &self,
                buffer: &mut [u8],
                timeout: ::std::time::Duration,
            ) -> Result<(), $crate::TransferError> {
                $crate::Receive::recv_n_within(self, buffer, timeout)
            }

            /// Like [`recv_n_v`](Self::recv_n_v), but takes no longer than `timeout` in all.
            ///
            /// # Errors
            /// As [`recv_n_within`](Self::recv_n_within).
            #[inline]
            pub fn recv_n_v_within(
                &self,
                slices: &mut [::std::io::IoSliceMut<'_>],
                timeout: ::std::time::Duration,
            ) -> Result<(), $crate::TransferError> {
                $crate::Receive::recv_n_v_within(self, slices, timeout)
            }
        }
    };
}

/// The methods of [`Transmit`](crate::Transmit), as inherent ones.
#[doc(hidden)]
#[macro_export]
macro_rules! inherent_transmit {
    ($endpoint:ty) => {
        /// Sending; the same methods as in the trait [`Transmit`](trait@$crate::Transmit).
        impl $endpoint {
            /// Sends some of `data` and returns the number of octets sent; waits while none can be sent.
            ///
            /// # Errors
            /// Any error of the operating system; a send timeout satisfies
            /// [`is_timeout`](fn@$crate::is_timeout).
            #[inline]
            pub fn send(&self, data: &[u8]) -> ::std::io::Result<usize> {
                $crate::Transmit::send(self, data)
            }

            /// Sends some of the octets of `slices`, in order, and returns their number.
            ///
            /// A call takes at most 1,024 slices; the rest is for the next call.
            ///
            /// # Errors
            /// As [`send`](Self::send).
            #[inline]
            pub fn send_v(&self, slices: &[::std::io::IoSlice<'_>]) -> ::std::io::Result<usize> {
                $crate::Transmit::send_v(self, slices)
            }

            /// Like [`send`](Self::send), but never waits.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) when nothing can be sent; those of the
            /// operating system.
            #[inline]
            pub fn try_send(&self, data: &[u8]) -> ::std::io::Result<usize> {
                $crate::Transmit::try_send(self, data)
            }

            /// Like [`send_v`](Self::send_v), but never waits.
            ///
            /// # Errors
            /// As [`try_send`](Self::try_send).
            #[inline]
            pub fn try_send_v(&self, slices: &[::std::io::IoSlice<'_>]) -> ::std::io::Result<usize> {
                $crate::Transmit::try_send_v(self, slices)
            }

            /// The time limit of one `send`; `None` waits for ever.
            ///
            /// # Errors
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a time of zero; others of the operating
            /// system.
            #[inline]
            pub fn set_send_timeout(&self, timeout: Option<::std::time::Duration>) -> ::std::io::Result<()> {
                $crate::Transmit::set_send_timeout(self, timeout)
            }

            /// Sends all of `data`.
            ///
            /// # Errors
            /// [`TransferError`](struct@$crate::TransferError) with the number of octets sent before a
            /// timeout or another error.
            #[inline]
            pub fn send_n(&self, data: &[u8]) -> Result<(), $crate::TransferError> {
                $crate::Transmit::send_n(self, data)
            }

            /// Sends all octets of `slices`, which are advanced past the octets sent.
            ///
            /// # Errors
            /// As [`send_n`](Self::send_n).
            #[inline]
            pub fn send_n_v(&self, slices: &mut [::std::io::IoSlice<'_>]) -> Result<(), $crate::TransferError> {
                $crate::Transmit::send_n_v(self, slices)
            }

            /// Like [`send`](Self::send), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// [`TimedOut`](std::io::ErrorKind::TimedOut) on a timeout; those of the operating system.
            #[inline]
            pub fn send_within(&self, data: &[u8], timeout: ::std::time::Duration) -> ::std::io::Result<usize> {
                $crate::Transmit::send_within(self, data, timeout)
            }

            /// Like [`send_v`](Self::send_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`send_within`](Self::send_within).
            #[inline]
            pub fn send_v_within(
                &self,
                slices: &[::std::io::IoSlice<'_>],
                timeout: ::std::time::Duration,
            ) -> ::std::io::Result<usize> {
                $crate::Transmit::send_v_within(self, slices, timeout)
            }

            /// Like [`send_n`](Self::send_n), but takes no longer than `timeout` in all.
            ///
            /// # Errors
            /// As [`send_n`](Self::send_n), with [`TimedOut`](std::io::ErrorKind::TimedOut) on a timeout.
            #[inline]
            pub fn send_n_within(
                &self,
                data: &[u8],
                timeout: ::std::time::Duration,
            ) -> Result<(), $crate::TransferError> {
                $crate::Transmit::send_n_within(self, data, timeout)
            }

            /// Like [`send_n_v`](Self::send_n_v), but takes no longer than `timeout` in all.
            ///
            /// # Errors
            /// As [`send_n_within`](Self::send_n_within).
            #[inline]
            pub fn send_n_v_within(
                &self,
                slices: &mut [::std::io::IoSlice<'_>],
                timeout: ::std::time::Duration,
            ) -> Result<(), $crate::TransferError> {
                $crate::Transmit::send_n_v_within(self, slices, timeout)
            }
        }
    };
}

/// The methods of [`Transfer`](crate::Transfer) and of the traits below it, as inherent ones.
#[doc(hidden)]
#[macro_export]
macro_rules! inherent_transfer {
    ($endpoint:ty) => {
        $crate::inherent_receive!($endpoint);
        $crate::inherent_transmit!($endpoint);

        /// Both ways; the same methods as in the trait [`Transfer`](trait@$crate::Transfer).
        impl $endpoint {
            /// Whether transfers fail at once with [`WouldBlock`](std::io::ErrorKind::WouldBlock) instead of
            /// waiting.
            ///
            /// # Errors
            /// Any error of the operating system.
            #[inline]
            pub fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                $crate::Transfer::set_nonblocking(self, on)
            }

            /// Ends sending, receiving or both, for all clones of this stream; also ends waits in other
            /// threads.
            ///
            /// # Errors
            /// [`NotConnected`](std::io::ErrorKind::NotConnected) when the peer has reset the connection;
            /// others of the operating system.
            #[inline]
            pub fn shutdown(&self, how: $crate::Shutdown) -> ::std::io::Result<()> {
                $crate::Transfer::shutdown(self, how)
            }

            /// Ends both directions, for a peer that may send without end: `Transfer::abort` says more.
            ///
            /// # Errors
            /// As [`shutdown`](Self::shutdown).
            pub fn abort(&self) -> ::std::io::Result<()> {
                $crate::Transfer::abort(self)
            }

            /// Half-close: the peer receives the octets sent, then the end; this side may continue to
            /// receive.
            ///
            /// # Errors
            /// As [`shutdown`](Self::shutdown).
            #[inline]
            pub fn close_writer(&self) -> ::std::io::Result<()> {
                $crate::Transfer::close_writer(self)
            }

            /// Ends receiving: every `recv` on this side returns the queued octets, then the end.
            ///
            /// # Errors
            /// As [`shutdown`](Self::shutdown).
            #[inline]
            pub fn close_reader(&self) -> ::std::io::Result<()> {
                $crate::Transfer::close_reader(self)
            }
        }
    };
}

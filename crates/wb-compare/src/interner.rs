//! String interning: each text is stored once and identified by a number.

use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};

/// A set in insertion order.
pub(crate) type Set<T> = IndexSet<T, FixedState>;

/// A map in insertion order.
pub(crate) type Map<K, V> = IndexMap<K, V, FixedState>;

/// An index into an [`Interner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Set<Box<str>>,
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        // The index fits into 32 bits: four thousand million texts would not fit into memory anyway.
        let index = match self.texts.get_index_of(text) {
            Some(index) => index,
            None => self.texts.insert_full(text.into()).0,
        };
        Symbol(index as u32)
    }

    pub(crate) fn find(&self, text: &str) -> Option<Symbol> {
        self.texts.get_index_of(text).map(|index| Symbol(index as u32))
    }

    /// `name` must be of this interner.
    pub(crate) fn resolve(&self, name: Symbol) -> &str {
        &self.texts[name.0 as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

impl Symbol {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

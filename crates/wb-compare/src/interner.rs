//! String interning: each text is stored once and identified by a number.

use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};

/// A set in insertion order.
pub(crate) type Set<T> = IndexSet<T, FixedState>;

/// A map in insertion order.
pub(crate) type Map<K, V> = IndexMap<K, V, FixedState>;

/// An interned text, identified by its index in its [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

/// The interned texts, in insertion order.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Set<Box<str>>,
}

impl Interner {
    /// Interns a text and returns its name.
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        // The index fits into 32 bits: four thousand million texts would not fit into memory anyway.
        let index = match self.texts.get_index_of(text) {
            Some(index) => index,
            None => self.texts.insert_full(text.into()).0,
        };
        Symbol(index as u32)
    }

    /// The name of a text that is already interned.
    pub(crate) fn find(&self, text: &str) -> Option<Symbol> {
        self.texts.get_index_of(text).map(|index| Symbol(index as u32))
    }

    /// The text of a name returned by this interner.
    pub(crate) fn resolve(&self, name: Symbol) -> &str {
        &self.texts[name.0 as usize]
    }

    /// All texts, in the order of their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

impl Symbol {
    /// The index in its interner.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

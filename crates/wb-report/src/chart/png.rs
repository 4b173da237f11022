//! Charts as PNG, from their SVG, with a font of our own: a server may have none.

use std::sync::{Arc, OnceLock};

use png::{ColorType, Compression, Encoder, EncodingError};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Why a chart cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// It is no SVG that can be read: a fault of this program.
    #[error("the chart could not be read: {0}")]
    Unreadable(#[from] resvg::usvg::Error),
    /// There is no room for so many pixels.
    #[error("the chart has {width} × {height} pixels, which is more than can be drawn; --svg has no such limit")]
    TooLarge {
        /// From left to right.
        width: u32,
        /// From top to bottom.
        height: u32,
    },
    /// The pixels could not be written.
    #[error("the chart could not be written: {0}")]
    Unwritten(#[from] EncodingError),
}

/// DejaVu Sans, cut down to what charts use; `fonts/LICENSE` has its terms and how it was made.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Beyond so many points of height one pixel a point has to do.
const MAX_DOUBLED_HEIGHT: f32 = 6000.0;
/// So many pixels at most, four bytes each in memory.
const MAX_PIXELS: u64 = 120_000_000;

/// Draws a chart of [`super::svg`], two pixels to a point; one where it is very tall.
///
/// Errors: it would have more than 120 million pixels.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let options = Options { fontdb: font(), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size();
    let scale = if size.height() > MAX_DOUBLED_HEIGHT { 1.0 } else { 2.0 };
    let [width, height] = [size.width(), size.height()].map(|points| (points * scale).ceil() as u32);
    let room = u64::from(width) * u64::from(height) <= MAX_PIXELS;
    let mut pixels = Pixmap::new(width, height).filter(|_| room).ok_or(PngError::TooLarge { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(encode(&pixels)?)
}

/// Charts have no transparent places, and lines and flat ground that need no thorough search for what repeats.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::Fast);
    let opaque: Vec<u8> = pixels.pixels().iter().flat_map(|it| [it.red(), it.green(), it.blue()]).collect();
    encoder.write_header()?.write_image_data(&opaque)?;
    Ok(bytes)
}

fn font() -> Arc<Database> {
    static DATABASE: OnceLock<Arc<Database>> = OnceLock::new();
    let database = DATABASE.get_or_init(|| {
        let mut database = Database::new();
        database.load_font_data(FONT.to_vec());
        database.set_sans_serif_family("DejaVu Sans");
        Arc::new(database)
    });
    Arc::clone(database)
}

//! Renders charts as PNG from their SVG, with an embedded font because a server may have none.

use std::sync::{Arc, OnceLock};

use png::{ColorType, Compression, Encoder, EncodingError};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// A bug of this program.
    #[error("cannot parse the chart: {0}")]
    Unreadable(#[from] resvg::usvg::Error),
    #[error("the chart of {width} × {height} pixels is too large for PNG; --svg has no such limit")]
    TooLarge { width: u32, height: u32 },
    #[error("cannot write the chart: {0}")]
    Unwritten(#[from] EncodingError),
}

/// DejaVu Sans, reduced to the characters that charts use; see `fonts/LICENSE` for its terms and origin.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Maximum height in points for two pixels per point; taller charts have one.
const MAX_DOUBLED_HEIGHT: f32 = 6000.0;
/// Each pixel takes four bytes in memory.
const MAX_PIXELS: u64 = 120_000_000;

/// Renders a chart of [`super::svg`] with two pixels per point, or one if it is very tall. Fails if it would have more
/// than 120 million pixels.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let tree = parse_svg(svg)?;
    let size = tree.size();
    let scale = if size.height() > MAX_DOUBLED_HEIGHT { 1.0 } else { 2.0 };
    let [width, height] = [size.width(), size.height()].map(|points| (points * scale).ceil() as u32);
    let fits = u64::from(width) * u64::from(height) <= MAX_PIXELS;
    let mut pixels = Pixmap::new(width, height).filter(|_| fits).ok_or(PngError::TooLarge { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(encode(&pixels)?)
}

pub(super) fn parse_svg(svg: &str) -> Result<Tree, resvg::usvg::Error> {
    let options = Options { fontdb: font(), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    Tree::from_str(svg, &options)
}

/// Encodes pixels without an alpha channel, as charts are opaque. Fast compression suffices for flat areas.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::Fast);
    let opaque: Vec<u8> = pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
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

// Numbers as text.

export function number(value, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const places = Math.abs(value) >= 10000 ? 0 : digits;
  return value
    .toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places })
    .replace("-", "−");
}
// A loss; one that would round to zero is shown as ≈ 0.
export const loss = (value, digits = 1) =>
  value < 0.5 * 10 ** -digits ? "≈ 0" : `−${number(value, digits)}`;
export const compact = (value) =>
  Math.abs(value) >= 1e6
    ? value
        .toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 })
        .replace("-", "−")
    : number(value, Math.abs(value) < 10 && !Number.isInteger(value) ? 1 : 0);
export const whole = (value) =>
  value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
export function percent(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.0005) return `${(100 * value).toPrecision(2)}%`;
  return `${(100 * value).toFixed(value === 0 || value === 1 ? 0 : digits)}%`;
}
export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${count >= 100 || unit === 0 ? count.toFixed(0) : count.toPrecision(3)} ${units[unit]}`;
}

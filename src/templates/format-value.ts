import { GoMap, GoNil, GoStruct, GoText, type GoValue } from "./values.ts";

/** Prints a value as Go's `%v` does; with names of fields, as `%+v`. */
export function formatValue(value: GoValue, hasNames = false): string {
  if (value === null) return "<nil>";
  if (typeof value === "number") return formatFloat(value);
  if (Array.isArray(value)) return `[${value.map((each) => formatValue(each, hasNames)).join(" ")}]`;
  if (value instanceof GoText) return value.text;
  if (value instanceof GoNil)
    return value.kind === "pointer" ? "<nil>" : value.kind === "map" ? "map[]" : "[]";
  if (value instanceof GoMap)
    return `map[${[...value.entries].map(([key, each]) => `${key}:${formatValue(each, hasNames)}`).join(" ")}]`;
  if (value instanceof GoStruct)
    return `{${value.fields.map((field) => `${hasNames ? `${field.name}:` : ""}${formatValue(field.value, hasNames)}`).join(" ")}}`;
  return String(value);
}

const maxPower = 6;

/** Go's `%v` of a float64: the shortest digits, with an exponent from a million on, and below 0.0001. */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  const [digits = "", exponent = "0"] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= maxPower)
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  return Object.is(value, -0) ? "-0" : String(value);
}

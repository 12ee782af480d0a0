import { expect, test } from "bun:test";
import { parseMode } from "../../src/image/file-mode.ts";

const octal = (mode: number) => mode.toString(8).padStart(4, "0");

test.each([
  // given, before, file after, directory after
  ["644", 0o600, "0644", "0644"],
  ["0755", 0o600, "0755", "0755"],
  ["4711", 0o644, "4711", "4711"],
  ["0", 0o644, "0000", "0000"],
  ["u+x", 0o644, "0744", "0744"],
  ["+x", 0o644, "0755", "0755"],
  ["a+x", 0o644, "0755", "0755"],
  ["go-w", 0o666, "0644", "0644"],
  ["u=rwx,g=rx,o=", 0o666, "0750", "0750"],
  ["a=rX", 0o644, "0444", "0555"],
  ["a=rX", 0o744, "0555", "0555"],
  ["+X", 0o600, "0600", "0711"],
  ["u=g", 0o640, "0440", "0440"],
  ["o=u", 0o750, "0757", "0757"],
  ["u+s", 0o755, "4755", "4755"],
  ["g+s", 0o755, "2755", "2755"],
  ["+t", 0o755, "1755", "1755"],
  ["00755", 0o600, "0755", "0755"],
  ["u-s", 0o4755, "0755", "0755"],
  ["u=rx", 0o4755, "0555", "0555"],
  ["g=rx", 0o2775, "0755", "0755"],
  ["a-x+X", 0o755, "0755", "0755"],
  ["a-x,a+X", 0o644, "0644", "0755"],
  ["a+x-X", 0o644, "0644", "0644"],
  ["g=u", 0o6755, "6775", "6775"],
  ["a=", 0o7777, "1000", "1000"],
  ["o+t", 0o6755, "6755", "6755"],
  ["u+t", 0o755, "1755", "1755"],
  ["o+s", 0o755, "0755", "0755"],
  ["+s", 0o755, "6755", "6755"],
  ["u=gw", 0o640, "0240", "0240"],
  ["u=wg", 0o640, "0440", "0440"],
  ["u=go", 0o641, "0141", "0141"],
  ["u+r-w", 0o200, "0400", "0400"],
  ["ug+rw,o-rwx", 0o607, "0660", "0660"],
])("--chmod=%s of %o", (given, before, file, directory) => {
  const change = parseMode(given);
  expect(octal(change(before, false))).toBe(file);
  expect(octal(change(before, true))).toBe(directory);
});

test.each(["", "8", "010000", "99", "u", "u+q", "rwx", "u+x,", "-1", "0x1ff", "u +x"])(
  "--chmod=%p is refused",
  (given) => {
    expect(() => parseMode(given)).toThrow("is not a valid file mode");
  },
);

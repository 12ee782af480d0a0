import { describe, expect, test } from "bun:test";
import { placeEntry, resolveDestination } from "../../src/builder/copy/destination.ts";
import { placementScript } from "../../src/builder/staging/placement-script.ts";
import { addStaged, type StagedEntry } from "../../src/builder/state/staged.ts";
import { EntryList } from "../../src/context/sources/entry-list.ts";

const link: StagedEntry = { type: "symlink", target: "x y", uid: 0, gid: 0 };
const made = (mode: number, isExplicit: boolean, uid = 0): StagedEntry => ({
  type: "directory",
  mode,
  isExplicit,
  uid,
  gid: uid,
});
const file: StagedEntry = {
  type: "file",
  sha256: "",
  size: 0,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: { kind: "text", text: "" },
};

const imageWithoutLinks = {
  isDirectoryInImage: async (path: string) => path === "/usr/bin",
  readLinkInImage: async () => undefined,
};

describe("the destination of one file, with the working directory /srv and /usr/bin in the image", () => {
  test.each([
    ["/app/", "/app/a.txt"],
    ["/app", "/app"],
    ["app", "/srv/app"],
    ["app/", "/srv/app/a.txt"],
    [".", "/srv/a.txt"],
    ["./", "/srv/a.txt"],
    ["..", "/a.txt"],
    ["/srv", "/srv/a.txt"],
    ["/", "/a.txt"],
    ["/usr/bin", "/usr/bin/a.txt"],
    ["/staged", "/staged/a.txt"],
    ["/staged/below", "/staged/below/a.txt"],
    ["/app/./x/../y", "/app/y"],
  ])("%s", async (given, path) => {
    const staged = new Map([
      ["/staged/below", made(0o755, true)],
      ["/staged/file", file],
    ]);
    const place = { ...imageWithoutLinks, workdir: "/srv", staged };
    const destination = await resolveDestination(given, { count: 1, makesDirectory: false }, place);
    expect(
      placeEntry(destination, { source: "a.txt", isDirectory: false, entries: new EntryList() }, "a.txt"),
    ).toBe(path);
  });
});

test("a directory's contents go below the destination", async () => {
  const place = { ...imageWithoutLinks, workdir: "/", staged: new Map() };
  const destination = await resolveDestination("app", { count: 1, makesDirectory: true }, place);
  expect(
    placeEntry(destination, { source: "src", isDirectory: true, entries: new EntryList() }, "lib/a.txt"),
  ).toBe("/app/lib/a.txt");
});

describe("staging over a staged path", () => {
  test("keeps the later file", () => {
    expect(addStaged(new Map([["/a", link]]), [["/a", file]]).get("/a")).toBe(file);
  });
  test("removes everything below a directory that a file replaces", () => {
    const staged = addStaged(
      new Map([
        ["/a", made(0o755, false)],
        ["/a/b", file],
        ["/ab", file],
      ]),
      [["/a", file]],
    );
    expect([...staged.keys()].sort()).toEqual(["/a", "/ab"]);
  });
  test("keeps an explicit directory if the later one is a parent directory", () => {
    const explicit = made(0o700, true);
    expect(addStaged(new Map([["/a", explicit]]), [["/a", made(0o755, false)]]).get("/a")).toBe(explicit);
  });
});

test("the placement script makes only what the API can't stage", () => {
  const staged = new Map<string, StagedEntry>([
    ["/app", made(0o755, false)],
    ["/app/file", file],
    ["/app/empty", made(0o755, false)],
    ["/app/private", made(0o700, true, 1000)],
    ["/app/it's a link", link],
  ]);
  expect(placementScript(staged)).toMatchInlineSnapshot(`
    "set -e
    umask 022
    trap 'code=$?; [ $code -ne 127 ] || code=1; exit $code' EXIT
    stop() { printf %s "$path"; printf '%s\\n' "$1" >&2; exit 1; }
    directories() {
      for path; do
        way=$path
        until [ -d "$way/" ]; do
          if [ -e "$way" ] || [ -L "$way" ]; then
            stop "cannot make the directory $path: $way in the image is not a directory"
          fi
          way=\${way%/*}
        done
      done
      mkdir -p "$@"
    }
    links() {
      for path; do
        if [ -d "$path" ] && [ ! -L "$path" ]; then
          stop "cannot make the link $path: there is a directory in the image"
        fi
      done
      rm -f "$@"
    }
    directories /app /app/empty
    directories /app/private
    chown 1000:1000 /app/private
    chmod 700 /app/private
    links '/app/it'\\''s a link'
    ln -s -- 'x y' '/app/it'\\''s a link'
    "
  `);
  expect(
    placementScript(
      new Map([
        ["/app", made(0o755, false)],
        ["/app/file", file],
      ]),
    ),
  ).toBe("");
});

/** What the store knows of images and contents does not stay for ever. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openStore } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";

const day = 24 * 3600 * 1000;
const path = join(temporaryDirectory(), "state.db");
let now = Date.now();
const store = openStore(path, {
  now: () => now,
  sleep: async () => {},
});
const entry = { etag: "e", lastModified: null, contentMd5: null, fetchedAt: null, sha256: "0", size: 1 };

/** Remembers something of everything. `name`: of the image and of contents. */
function remember(name: string): void {
  store.imageMetadata.set(name, "environment", "{}");
  store.imageMetadata.set(`${name} over sha256:0`, "layer blob gzip", "{}");
  store.imageMetadata.set(`layer of ${name}`, "repository of docker://r.example", "docker://r.example/app");
  store.imports.set(`${name}:latest`, name);
  store.copies.set(name, "/words", []);
  store.copies.set(`commit ${name}`, "/words", []);
  store.copies.setArchive(`archive of ${name}`, "0");
  store.urls.set(`http://host/${name}`, entry);
}

function rows(): string[] {
  using database = new Database(path, { readonly: true });
  return database
    .query<{ of: string }, []>(
      `SELECT image AS of FROM fact UNION ALL SELECT reference FROM import UNION ALL SELECT image FROM copied
       UNION ALL SELECT key FROM archive UNION ALL SELECT url FROM url ORDER BY of`,
    )
    .all()
    .map(({ of }) => of);
}

test("what is known of an image goes with it, what is known of contents after some months", () => {
  remember("one");
  remember("other");
  store.forgetImages(["one", "elsewhere"]);
  const contentsOfOne = ["archive of one", "commit one", "http://host/one", "layer of one"];
  const allOfOther = ["archive of other", "commit other", "http://host/other", "layer of other"];
  const factsOfOther = ["other", "other", "other over sha256:0", "other:latest"];
  expect(rows()).toEqual([...contentsOfOne, ...allOfOther, ...factsOfOther].sort());
  now += 89 * day;
  remember("third");
  expect(rows()).toHaveLength(20);
  now += 2 * day;
  remember("fourth");
  // Facts of images that are there stay: nobody else knows them.
  expect(rows().filter((of) => /one|other/.test(of))).toEqual(["other", "other:latest"]);
});

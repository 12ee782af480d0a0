import { expect, test } from "bun:test";
import { places } from "./places.ts";
import { promises } from "./promises.ts";
import { readPlacesTable } from "./table.ts";

const table = readPlacesTable();

test("the table has a column for each place, a row for each promise, and a reason for each cell without a test", () => {
  const tested = table.places.filter((place) =>
    Object.values(table.rows).some((row) => row[place] === "kept"),
  );
  expect(tested.toSorted()).toEqual(Object.keys(places).toSorted());
  expect(Object.keys(table.rows).toSorted()).toEqual(Object.keys(promises).toSorted());
  expect(table.unexplained).toEqual([]);
});

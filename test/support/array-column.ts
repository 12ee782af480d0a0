import type { Column } from "../../src/columns/text-map.ts";

/** The simplest column: an array. */
export class ArrayColumn<Value> extends Array<Value> implements Column<Value> {
  override at(row: number): Value {
    return super.at(row) as Value;
  }
  set(row: number, value: Value): void {
    this[row] = value;
  }
  empty(): ArrayColumn<Value> {
    return new ArrayColumn<Value>();
  }

  copy(): ArrayColumn<Value> {
    return ArrayColumn.from(this) as ArrayColumn<Value>;
  }
}

package main

import (
	"math"
	"testing"
)

func TestSlopeIsThatOfTheLineOfLeastSquares(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want float64
	}{
		{[]float64{5, 5, 5, 5}, 0},
		{[]float64{1, 3, 5, 7}, 2},
		{[]float64{0, 2, 1, 3}, 0.8},
	} {
		if got := slopeOf([]float64{0, 1, 2, 3}, c.y); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("slopeOf(%v) = %v, want %v", c.y, got, c.want)
		}
	}
}
